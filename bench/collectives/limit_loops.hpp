#pragma once
/// Does only the necessary loads and stores of an op, as fast as one core can do them.

#include <cstddef>
#include <span>

namespace weft::bench {

/// The arguments of a reduction: sums `count` elements of all sources into all destinations. The
/// elements begin at `source_begin` and `destination_begin`.
struct Reduction {
  std::span<float* const> sources;
  std::size_t source_begin = 0;
  std::span<float* const> destinations;
  std::size_t destination_begin = 0;
  std::size_t count = 0;
};
void reduce(const Reduction& reduction);

}  // namespace weft::bench
