#pragma once
/// Makes the values that ranks write before an op, and checks the values that they read after it.
/// All are small integers, so that a sum of floats is exact in any order.

#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// Fills a rank's tensor: element i becomes (i + 5 * rank + seed) % 64.
void fill(std::span<float> tensor, int rank, int seed);

/// Reads all elements, and returns the sum of their bits.
std::uint32_t checksum(std::span<const float> tensor);

/// The result that an op must have for one rank if all tensors are filled with the same seed.
class Expected {
 public:
  Expected(Op op, int rank, int ranks, std::size_t count, int seed)
      : op_(op), rank_(rank), ranks_(ranks), count_(count), seed_(seed) {}

  /// Returns the checksum of the expected result's `count` elements.
  std::uint32_t checksum() const;
  bool equals(std::span<const float> result) const;

 private:
  template <typename Visit>
  void visit_blocks(Visit&& visit) const;

  Op op_;
  int rank_;
  int ranks_;
  std::size_t count_;
  int seed_;
};

}  // namespace weft::bench
