#include <weft/debug.hpp>

#include "spmd/tensor/trace.hpp"

namespace weft {

AnomalyScope::AnomalyScope(std::source_location loc)
    : trace_(Trace::current(loc)), before_(trace_.detects_anomaly()) {
  trace_.set_detects_anomaly(true);
}

AnomalyScope::~AnomalyScope() { trace_.set_detects_anomaly(before_); }

}  // namespace weft
