#include "bench/collectives/pattern.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace weft::bench {
namespace {

constexpr std::uint32_t kPeriod = 64;

float value(std::size_t element, int rank, int seed) {
  const auto number = static_cast<std::uint32_t>(element) + static_cast<std::uint32_t>(5 * rank) +
                      static_cast<std::uint32_t>(seed);
  return static_cast<float>(static_cast<std::int32_t>(number % kPeriod));
}

}  // namespace

void fill(std::span<float> tensor, int rank, int seed) {
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = value(i, rank, seed);
}

std::uint32_t checksum(std::span<const float> tensor) {
  std::uint32_t sum = 0;
  for (const float element : tensor) sum += std::bit_cast<std::uint32_t>(element);
  return sum;
}

/// Calls visit(begin, block) for all blocks of the result, in order.
template <typename Visit>
void Expected::visit_blocks(Visit&& visit) const {
  const bool gathers = op_ == Op::all_gather || op_ == Op::all_to_all;
  const bool scatters = op_ == Op::reduce_scatter || op_ == Op::all_to_all;
  const bool reduces = op_ == Op::all_reduce || op_ == Op::reduce_scatter;
  const std::size_t part = gathers ? count_ / static_cast<std::size_t>(ranks_) : count_;
  const std::size_t offset = scatters ? part * static_cast<std::size_t>(rank_) : 0;
  std::array<float, 1024> block;
  for (std::size_t begin = 0; begin < count_;) {
    const std::size_t in_part = begin % part;
    const std::size_t size = std::min(block.size(), part - in_part);
    const int first = gathers ? static_cast<int>(begin / part) : 0;
    const int last = reduces ? ranks_ - 1 : first;
    for (std::size_t i = 0; i < size; ++i) {
      block[i] = 0;
      for (int rank = first; rank <= last; ++rank) {
        block[i] += value(offset + in_part + i, rank, seed_);
      }
    }
    visit(begin, std::span<const float>(block).first(size));
    begin += size;
  }
}

std::uint32_t Expected::checksum() const {
  std::uint32_t sum = 0;
  visit_blocks([&](std::size_t, std::span<const float> block) { sum += bench::checksum(block); });
  return sum;
}

bool Expected::equals(std::span<const float> result) const {
  bool equal = result.size() == count_;
  visit_blocks([&](std::size_t begin, std::span<const float> block) {
    equal = equal && std::ranges::equal(block, result.subspan(begin, block.size()));
  });
  return equal;
}

}  // namespace weft::bench
