#pragma once
/// Does only the loads and stores that an op needs, as fast as one core can.

#include <cstddef>
#include <span>

namespace weft::bench {

/// A reduction: sums up `count` elements of all sources into all destinations. The elements begin
/// at `source_begin` and `destination_begin`.
struct Reduction {
  std::span<float* const> sources;
  std::size_t source_begin = 0;
  std::span<float* const> destinations;
  std::size_t destination_begin = 0;
  std::size_t count = 0;
};
void reduce(const Reduction& reduction);

}  // namespace weft::bench
