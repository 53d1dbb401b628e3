#include <weft/inspect/debug.hpp>

#include "spmd/tensor/trace.hpp"

namespace weft {

AnomalyScope::AnomalyScope(std::source_location loc)
    : trace_(Trace::current(loc)), before_(trace_.modes().detects_anomaly) {
  trace_.modes().detects_anomaly = true;
}

AnomalyScope::~AnomalyScope() { trace_.modes().detects_anomaly = before_; }

}  // namespace weft
