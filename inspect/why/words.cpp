#include "inspect/why/words.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {

std::string seconds_text(double seconds) {
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s", seconds);
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
