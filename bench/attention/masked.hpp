#pragma once
/// Measures attention with masks and a bias, as one attention op and composed of other ops.

#include <cstdint>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

/// Returns the milliseconds of each form, which runs as a plan on one thread. Ratios are to causal
/// attention with the `causal` option. `num_rows` is the total number of queries of all heads.
std::vector<TableRow> masked_attention(int rounds, std::int64_t num_rows);

}  // namespace weft::bench
