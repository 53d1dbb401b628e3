#pragma once
/// write_spread(): writes a tile of a spread (spmd/fusion/spread.hpp).

#include <cstddef>

#include "spmd/fusion/spread.hpp"

namespace weft::kernels {

/// Writes `count` elements of the spread of `from`, beginning with element number `begin`.
void write_spread(const Spread& spread, std::size_t element_bytes, const std::byte* from,
                  std::int64_t begin, std::int64_t count, std::byte* to);

}  // namespace weft::kernels
