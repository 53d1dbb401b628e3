#pragma once
/// The necessary loads and stores of an op, as fast as one core can do them.

#include <cstddef>
#include <span>

namespace weft::bench {

/// Sums `count` elements of all sources, beginning with `begin`, into all destinations.
struct Reduction {
  std::span<float* const> sources;
  std::size_t source_begin = 0;
  std::span<float* const> destinations;
  std::size_t destination_begin = 0;
  std::size_t count = 0;
};
void reduce(const Reduction& reduction);

}  // namespace weft::bench
