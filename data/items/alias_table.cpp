#include "data/items/alias_table.hpp"

#include <algorithm>
#include <cmath>

#include <weft/tensor/error.hpp>

namespace weft {

AliasTable::AliasTable(const std::vector<double>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && std::isfinite(weights[i])) continue;
    fail(Errc::invalid_argument,
         "WeightedSampler: weights[{}] = {}: expected finite numbers of at least 0", i, weights[i]);
  }
  const auto largest = std::ranges::max_element(weights);
  if (largest == weights.end() || *largest == 0) {
    fail(Errc::invalid_argument, "WeightedSampler: all {} weights are 0, so nothing can be drawn",
         weights.size());
  }
  double sum = 0;  // sum of weight / largest weight, which can't overflow
  for (const double weight : weights) sum += weight / *largest;
  const double mean = sum / static_cast<double>(weights.size());
  columns_.resize(weights.size());
  std::vector<std::size_t> below;  // columns whose share is below 1
  std::vector<std::size_t> above;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    columns_[i] = {weights[i] / *largest / mean, largest - weights.begin()};
    (columns_[i].share < 1 ? below : above).push_back(i);
  }
  while (!below.empty() && !above.empty()) {
    const std::size_t from = above.back();
    Column& filled = columns_[below.back()];
    below.pop_back();
    filled.other = static_cast<std::int64_t>(from);
    columns_[from].share -= 1 - filled.share;
    if (columns_[from].share >= 1) continue;
    above.pop_back();
    below.push_back(from);
  }
  // Except for rounding errors, the shares of the remaining columns are 1. If a number has weight
  // 0, its share becomes 0 instead, so that it is never drawn.
  for (const std::vector<std::size_t>& left : {below, above}) {
    for (const std::size_t i : left) columns_[i].share = weights[i] == 0 ? 0 : 1;
  }
}

}  // namespace weft
