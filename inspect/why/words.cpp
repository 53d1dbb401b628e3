#include "inspect/why/words.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {

namespace {

/// Returns the number with three significant digits, or with all digits before the point if there
/// are more.
std::string three_digits(double number) {
  if (number >= 99.95) return fmt::format("{:.0f}", number);
  return number >= 9.995 ? fmt::format("{:.1f}", number) : fmt::format("{:.2f}", number);
}

}  // namespace

std::string seconds_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 6000) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string time_text(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 1) return three_digits(seconds * 1e3) + " ms";
  return seconds < 100 ? three_digits(seconds) + " s" : seconds_text(seconds);
}

std::string per_second_text(double rate) { return rate == 0 ? "0" : three_digits(rate); }

std::string percent_text(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string metric_text(double value) { return fmt::format("{:.4g}", value); }

std::string silence_text(const HostSight& host) {
  const std::string machine = host.machine.empty() ? "" : fmt::format(" ({})", host.machine);
  return fmt::format("host {}{}: silent {}", host.host, machine, seconds_text(host.silent_s));
}

std::string ranges_text(std::vector<int> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    const int first = numbers[i];
    const int last = numbers[end - 1];
    parts.push_back(end - i > 2   ? fmt::format("{}-{}", first, last)
                    : end - i > 1 ? fmt::format("{}, {}", first, last)
                                  : std::to_string(first));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string bytes_text(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string workers_text(const std::vector<int>& workers) {
  const std::set<int> distinct(workers.begin(), workers.end());
  return fmt::format("worker{} {}", distinct.size() == 1 ? "" : "s", ranges_text(workers));
}

}  // namespace weft
