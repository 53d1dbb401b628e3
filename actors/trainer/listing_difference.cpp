#include <weft/actors/trainer/listing_difference.hpp>

#include <sstream>

namespace weft {
namespace {

/// What a line says: of an input not its number, which depends on the ops before its first use.
std::string said_of(std::string line) {
  if (line.find(" = ") != line.npos) return line;
  const auto number = line.find('%');
  if (number == line.npos) return line;
  const auto end = line.find_first_not_of("0123456789", number + 1);
  return line.erase(number, end - number);
}

}  // namespace

Difference first_difference(const std::string& first, const std::string& second) {
  std::istringstream a(first), b(second);
  Difference difference;
  for (;;) {
    ++difference.line;
    const bool more_a = static_cast<bool>(std::getline(a, difference.first));
    const bool more_b = static_cast<bool>(std::getline(b, difference.second));
    if (!more_a) difference.first = "(end)";
    if (!more_b) difference.second = "(end)";
    if (!more_a || !more_b || said_of(difference.first) != said_of(difference.second)) {
      return difference;
    }
  }
}

}  // namespace weft
