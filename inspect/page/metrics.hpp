#pragma once
/// Writes a job's numbers for Prometheus.

#include <string>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the metrics in Prometheus' text format, version 0.0.4. Metrics that come from events are
/// omitted if the snapshot has none.
std::string metrics_text(const Snapshot& job);

}  // namespace weft
