#include <weft/actors/trainer/report_filter.hpp>

#include <algorithm>
#include <functional>

namespace weft {

void ReportFilter::begin_generation(std::uint64_t generation, std::uint64_t step) {
  first_steps_[generation] = step;
}

bool ReportFilter::is_new(const Report& report) {
  ++count_;
  const std::hash<std::string> hash;
  const Seen seen{report.generation, hash(report.metrics) ^ hash(report.checkpoint) << 1};
  const bool is_again = report.generation > 1 && first_steps_.contains(report.generation);
  if (is_again && report.step <= first_steps_.at(report.generation)) {
    const auto same = [&](const auto& before) {
      return before.second.generation < report.generation && before.second.digest == seen.digest;
    };
    if (std::ranges::any_of(seen_, same)) return false;
    // What the step's own reports were is in place; this one comes after them.
    std::uint32_t number = report.number;
    while (!seen_.try_emplace({report.step, number}, seen).second) ++number;
    return true;
  }
  return seen_.try_emplace({report.step, report.number}, seen).second;
}

}  // namespace weft
