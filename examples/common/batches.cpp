#include "examples/common/batches.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace examples {

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::seed_seq words{seed, seed >> 32, epoch, epoch >> 32};
  std::mt19937_64 random(words);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

double accuracy(std::span<const float> logits, std::span<const std::int32_t> labels) {
  const std::size_t classes = logits.size() / labels.size();
  std::size_t right = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto scores = logits.subspan(row * classes, classes);
    right += std::ranges::max_element(scores) - scores.begin() == labels[row];
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

}  // namespace examples
