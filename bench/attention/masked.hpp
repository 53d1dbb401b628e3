#pragma once
/// Measures attention with masks and a bias, both as one attention op and as a composition of other
/// ops.

#include <cstdint>
#include <vector>

#include "bench/table.hpp"

namespace weft::bench {

/// Measures each form, which runs as a plan on one thread, in milliseconds. Ratios are to causal
/// attention with the option `causal`. `num_rows` is the number of queries, summed over all heads.
std::vector<TableRow> masked_attention(int rounds, std::int64_t num_rows);

}  // namespace weft::bench
