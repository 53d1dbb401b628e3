#pragma once
/// A job's numbers for Prometheus.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// In Prometheus' text format, version 0.0.4. Those that come from events are left out where the
/// snapshot has none.
std::string metrics_text(const Snapshot& job);

}  // namespace weft
