#include <weft/inspect/metrics.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// Jobs with fewer steps aren't analyzed: in the first steps many programs run for the first time,
/// so many compilations don't indicate a mistake.
constexpr std::uint64_t kStepsForAnalysis = 10;

std::string text_of(MetricUnit unit, double value) {
  struct Scale {
    double from;
    const char* name;
  };
  static constexpr std::array kSeconds{Scale{1, "s"}, Scale{1e-3, "ms"}, Scale{1e-6, "us"}};
  static constexpr std::array kBytes{Scale{1 << 30, "GiB"}, Scale{1 << 20, "MiB"},
                                     Scale{1 << 10, "KiB"}, Scale{1, "B"}};
  const auto scaled = [value](const auto& scales) {
    for (const auto& [from, name] : scales) {
      if (value >= from) return fmt::format("{:.4g} {}", value / from, name);
    }
    return fmt::format("{:.4g} {}", value / scales.back().from, scales.back().name);
  };
  if (unit == MetricUnit::share) return fmt::format("{:.4g} %", 100 * value);
  return unit == MetricUnit::seconds ? scaled(kSeconds) : scaled(kBytes);
}

std::string percentiles(const MetricData& data) {
  std::vector<double> sorted = data.last;
  std::ranges::sort(sorted);
  std::string text;
  for (const int percent : {1, 5, 10, 20, 50, 80, 90, 95, 99}) {
    const auto last = static_cast<double>(sorted.size() - 1);
    const auto at = static_cast<std::size_t>(last * percent / 100 + 0.5);
    text +=
        fmt::format("{}{}%={}", text.empty() ? "" : "; ", percent, text_of(data.unit, sorted[at]));
  }
  return text;
}

MetricsTable& collected(const std::source_location& loc) {
  Runtime& runtime = Trace::current(loc).runtime();
  runtime.collect_metrics();
  return runtime.metrics();
}

std::vector<std::string> names_of(const auto& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

}  // namespace

void MetricData::add(double value) {
  if (last.size() < kSamplesKept) {
    last.push_back(value);
  } else {
    last[count % kSamplesKept] = value;
  }
  total += value;
  ++count;
}

void MetricsTable::count(std::string_view name, std::uint64_t by) {
  const auto found = counters_.find(name);
  if (found != counters_.end()) {
    found->second += by;
  } else {
    counters_.emplace(name, by);
  }
}

void MetricsTable::sample(std::string_view name, MetricUnit unit, double value) {
  auto found = metrics_.find(name);
  if (found == metrics_.end()) {
    found = metrics_.emplace(name, MetricData()).first;
    found->second.unit = unit;
  }
  found->second.add(value);
}

void MetricsTable::set(std::string_view name, std::uint64_t count) {
  counters_.insert_or_assign(std::string(name), count);
}

void MetricsTable::set(std::string_view name, MetricData data) {
  metrics_.insert_or_assign(std::string(name), std::move(data));
}

std::vector<std::string> MetricsTable::analysis() const {
  std::vector<std::string> lines;
  const auto value = [&](std::string_view name) {
    const auto found = counters_.find(name);
    return found == counters_.end() ? std::uint64_t{0} : found->second;
  };
  const std::uint64_t steps = value("MarkStep");
  const std::uint64_t compiles = value("UncachedCompile");
  if (steps >= kStepsForAnalysis && compiles * 2 > steps) {
    lines.push_back(
        fmt::format("{} programs were compiled in {} steps: keep shapes and constants as they are "
                    "from step to step; WEFT_LOG=warn logs each change and its place",
                    compiles, steps));
  }
  for (const auto& [place, reads] : forced_reads_) {
    if (steps < kStepsForAnalysis || reads * 2 <= steps) continue;
    lines.push_back(
        fmt::format("a value was read {} times in {} steps at {}, before the step had ended: read "
                    "it after sync(), or in a step closure, so that the next step doesn't wait",
                    reads, steps, place));
  }
  return lines;
}

std::string MetricsTable::report() const {
  std::string text;
  for (const std::string& line : analysis()) text += "Analysis: " + line + '\n';
  for (const auto& [name, data] : metrics_) {
    const bool is_share = data.unit == MetricUnit::share;  // has a mean, but no sum
    const double all = is_share ? data.total / static_cast<double>(data.count) : data.total;
    text += fmt::format("Metric: {}\n  TotalSamples: {}\n  Accumulator: {}\n", name, data.count,
                        text_of(data.unit, all));
    if (!data.last.empty()) text += fmt::format("  Percentiles: {}\n", percentiles(data));
  }
  for (const auto& [name, value] : counters_) {
    text += fmt::format("Counter: {}\n  Value: {}\n", name, value);
  }
  for (const auto& [place, reads] : forced_reads_) {
    text += fmt::format("Counter: ForcedRead at {}\n  Value: {}\n", place, reads);
  }
  return text;
}

std::string metrics_report(std::source_location loc) { return collected(loc).report(); }

std::uint64_t counter_value(std::string_view name, std::source_location loc) {
  const auto& counters = collected(loc).counters();
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second;
}

MetricData metric_data(std::string_view name, std::source_location loc) {
  const auto& metrics = collected(loc).metrics();
  const auto found = metrics.find(name);
  return found == metrics.end() ? MetricData{} : found->second;
}

std::vector<std::string> counter_names(std::source_location loc) {
  return names_of(collected(loc).counters());
}

std::vector<std::string> metric_names(std::source_location loc) {
  return names_of(collected(loc).metrics());
}

}  // namespace weft
