#include "actors/trainer/result_of_events.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "actors/data/report_log.hpp"

namespace weft {
namespace {

/// Returns the metrics, or null for "".
Metrics from_cbor(const std::string& bytes) {
  return bytes.empty() ? Metrics() : Metrics::from_cbor(bytes);
}

}  // namespace

void add_to(Result& result, const Report& report, const Metrics& metrics) {
  auto& history = result.metrics_history;
  if (history.size() == 2 * kHistoryMax) {
    history.erase(history.begin(), history.begin() + kHistoryMax);
  }
  history.push_back(metrics);
  result.metrics = metrics;
  if (!report.checkpoint.empty()) result.checkpoint = Checkpoint{report.checkpoint};
}

void add_to(Result& result, const trainer_event::Ended& ended) {
  auto& history = result.metrics_history;
  if (history.size() > kHistoryMax) history.erase(history.begin(), history.end() - kHistoryMax);
  result.failures = ended.survived;
  result.worker_metrics.resize(ended.worker_metrics.size());
  std::ranges::transform(ended.worker_metrics, result.worker_metrics.begin(), from_cbor);
  result.returned.resize(ended.worker_metrics.size());
  std::ranges::transform(ended.returned, result.returned.begin(), from_cbor);
  // If all workers report or save checkpoints, the result names a complete checkpoint.
  if (!ended.whole_checkpoint.empty()) result.checkpoint = Checkpoint{ended.whole_checkpoint};
}

void require_finite(const Report& report, const Metrics& metrics) {
  const auto number = find_not_finite(metrics);
  if (!number) return;
  fail(Errc::loop_failed,
       "worker {} reports {} at step {}, and run.failure.ends_on_nan is set: "
       "WEFT_DETECT_ANOMALY=1 shows the first op that computes such a number",
       report.worker, *number, report.step);
}

}  // namespace weft
