#pragma once
/// Attention with masks and a bias, inside the tiles and composed of other ops.

#include <cstdint>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

/// Milliseconds of each form on one thread, as plans; ratios are to causal attention by its flag.
/// `num_rows`: queries of all heads together.
std::vector<TableRow> masked_attention(int rounds, std::int64_t num_rows);

}  // namespace weft::bench
