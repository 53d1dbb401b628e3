#include "bench/collectives/limit_loops.hpp"

#include <algorithm>
#include <array>

namespace weft::bench {
namespace {

template <std::size_t kSources, std::size_t kDestinations>
void reduce_fixed(const Reduction& of) {
  std::array<const float*, kSources> sources;
  std::array<float*, kDestinations> destinations;
  for (std::size_t q = 0; q < kSources; ++q) sources[q] = of.sources[q] + of.source_begin;
  for (std::size_t q = 0; q < kDestinations; ++q) {
    destinations[q] = of.destinations[q] + of.destination_begin;
  }
  // The loop can be vectorized, because a destination is either equal to a source or doesn't
  // overlap any source.
#pragma GCC ivdep
  for (std::size_t i = 0; i < of.count; ++i) {
    float sum = sources[0][i];
    for (std::size_t q = 1; q < kSources; ++q) sum += sources[q][i];
    for (std::size_t q = 0; q < kDestinations; ++q) destinations[q][i] = sum;
  }
}

/// Reduces any number of sources, in blocks that remain in the first-level cache.
void reduce_any(const Reduction& of) {
  std::array<float, 1024> sum;
  for (std::size_t begin = 0; begin < of.count; begin += sum.size()) {
    const std::size_t size = std::min(sum.size(), of.count - begin);
    std::copy_n(of.sources[0] + of.source_begin + begin, size, sum.begin());
    for (const float* source : of.sources.subspan(1)) {
      const float* from = source + of.source_begin + begin;
      for (std::size_t i = 0; i < size; ++i) sum[i] += from[i];
    }
    for (float* destination : of.destinations) {
      std::copy_n(sum.begin(), size, destination + of.destination_begin + begin);
    }
  }
}

}  // namespace

void reduce(const Reduction& reduction) {
  const bool scatters = reduction.destinations.size() == 1;
  switch (reduction.sources.size()) {
    case 2: return scatters ? reduce_fixed<2, 1>(reduction) : reduce_fixed<2, 2>(reduction);
    case 4: return scatters ? reduce_fixed<4, 1>(reduction) : reduce_fixed<4, 4>(reduction);
    default: return reduce_any(reduction);
  }
}

}  // namespace weft::bench
