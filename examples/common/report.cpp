#include "examples/common/report.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <xxhash.h>

namespace examples {

std::string digest(const weft::Module& net) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const weft::Parameter& parameter : net.parameters()) {
    const std::vector<std::byte> bytes = parameter.to_bytes();
    XXH3_64bits_update(state, parameter.name().data(), parameter.name().size());
    XXH3_64bits_update(state, bytes.data(), bytes.size());
  }
  const auto hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}", hash);
}

void StepTimes::step_ended() {
  step_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin_).count());
}

weft::Metrics StepTimes::summary() const {
  if (step_us_.empty()) return {{"median", 0.0}, {"p99", 0.0}};
  std::vector<double> sorted = step_us_;
  std::ranges::sort(sorted);
  const auto at = [&](double q) {
    return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
  };
  return {{"median", at(0.5)}, {"p99", at(0.99)}};
}

std::string to_json(const weft::Result& result) {
  const auto& history = result.metrics_history;
  weft::Metrics json{{"mesh", nullptr},
                     {"test_accuracy", nullptr},
                     {"loss_history", weft::Metrics::array()},
                     {"params_digest", result.metrics.value("params_digest", "")},
                     {"step_us", result.metrics.value("step_us", weft::Metrics())},
                     {"job", result.job.id},
                     {"run_dir", result.path},
                     {"error", nullptr}};
  if (result.error) json["error"] = result.error->message;
  if (const auto& mesh = result.job.mesh) {
    json["mesh"] = {{"shape", mesh->shape()}, {"axes", mesh->axis_names()}};
  }
  for (const weft::Metrics& metrics : history) {
    if (metrics.contains("loss")) json["loss_history"].push_back(metrics["loss"]);
    if (metrics.contains("test_accuracy")) json["test_accuracy"] = metrics["test_accuracy"];
  }
  json["steps"] = json["loss_history"].size();
  // A folder's name may contain bytes that aren't UTF-8.
  return json.dump(1, ' ', false, weft::Metrics::error_handler_t::replace);
}

}  // namespace examples
