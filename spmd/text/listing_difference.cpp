#include "spmd/text/listing_difference.hpp"

#include <algorithm>
#include <sstream>

namespace weft {
namespace {

/// Returns the position behind the quoted text that begins at `quote`.
std::size_t end_of_quoted(const std::string& line, std::size_t quote) {
  std::size_t end = quote + 1;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  return std::min(end + 1, line.size());
}

enum class Layouts { compared, ignored };

/// Returns the part of a line that is compared. Removes an op's source location, and an input's
/// number, because it depends on the ops before the input's first use. If `layouts` is `ignored`,
/// also removes shardings: the listing shows those of the program's first run, which depend on
/// earlier programs.
std::string said_of(std::string line, Layouts layouts) {
  if (line.find(" = ") != line.npos) return line.erase(std::min(line.rfind("  // "), line.size()));
  const auto number = line.find('%');
  if (number == line.npos) return line;
  if (const auto quote = line.find('"'); layouts == Layouts::ignored && quote != line.npos) {
    const auto layout = end_of_quoted(line, quote);
    const auto updates = line.find(" updates ", layout);
    line.erase(layout, updates == line.npos ? line.npos : updates - layout);
    if (line.ends_with(',')) line.pop_back();
  }
  const auto end = line.find_first_not_of("0123456789", number + 1);
  return line.erase(number, end - number);
}

/// Returns the first line that differs, or line 0 if no line differs.
Difference first_difference(const std::string& first, const std::string& second, Layouts layouts) {
  std::istringstream a(first), b(second);
  Difference difference;
  for (;;) {
    ++difference.line;
    const bool more_a = static_cast<bool>(std::getline(a, difference.first));
    const bool more_b = static_cast<bool>(std::getline(b, difference.second));
    if (!more_a && !more_b) return {};
    if (!more_a) difference.first = "(end)";
    if (!more_b) difference.second = "(end)";
    if (!more_a || !more_b ||
        said_of(difference.first, layouts) != said_of(difference.second, layouts)) {
      return difference;
    }
  }
}

}  // namespace

Difference first_difference(const std::string& first, const std::string& second) {
  const Difference cause = first_difference(first, second, Layouts::ignored);
  return cause.line != 0 ? cause : first_difference(first, second, Layouts::compared);
}

}  // namespace weft
