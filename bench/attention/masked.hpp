#pragma once
/// Measures attention with masks and a bias, both inside the tiles and composed of other ops.

#include <cstdint>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

/// Returns the milliseconds of each form on one thread, as plans. Ratios are to causal attention by
/// its flag. `num_rows` is the number of queries of all heads together.
std::vector<TableRow> masked_attention(int rounds, std::int64_t num_rows);

}  // namespace weft::bench
