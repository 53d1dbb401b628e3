#include "spmd/base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kNearestMax = 3;
/// Names longer than this are not compared.
constexpr std::size_t kComparedMax = 200;
/// Returns the number of characters to insert, remove or replace to turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> names) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& other : names) {
    const std::size_t longer = std::max(name.size(), other.size());
    const std::size_t shorter = std::min(name.size(), other.size());
    if (longer > kComparedMax || 2 * (longer - shorter) > name.size()) continue;
    const std::size_t distance = edit_distance(name, other);
    if (2 * distance <= name.size()) found.emplace_back(distance, other);
  }
  std::ranges::sort(found);
  std::vector<std::string> best;
  for (std::size_t i = 0; i < std::min(found.size(), kNearestMax); ++i) {
    best.push_back(std::move(found[i].second));
  }
  return best;
}

}  // namespace weft
