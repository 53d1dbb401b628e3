#pragma once
/// Metrics: writes a job's numbers for Prometheus.

#include <string>
#include <string_view>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the metrics in Prometheus' text format, version 0.0.4. Omits metrics that come from
/// events if the snapshot has no events.
std::string metrics_text(const Snapshot& job);

/// Returns a label's value in quotes.
std::string label_value(std::string_view value);
/// Adds the lines that describe a metric.
void begin_metric(std::string& text, std::string_view name, std::string_view type,
                  std::string_view help);

}  // namespace weft
