#pragma once
/// The target of weft's compiler for chips that have a compiler of StableHLO.

#include "spmd/target/target.hpp"

namespace weft {

/// A compiler of StableHLO fuses ops, chooses layouts, and decides which values it recomputes and
/// where it stores values. So weft's compiler does none of this.
inline constexpr Target kStableHloTarget{
    .name = "stablehlo",
    .tile_elements = 0,
    .compiled_dtypes = {},
    .element_costs =
        {.simple = -1, .division = -1, .function = -1, .long_function = -1, .half_result = 0},
    .recomputed_bytes_min = Target::kNever,
    .features_last = false,
    .shared_bytes_min = Target::kNever,
    .overlap_work_min = Target::kNever,
    .overlap_bytes_max = 0,
    .has_host_address = false,
    .keeps_memory = false,
};

}  // namespace weft
