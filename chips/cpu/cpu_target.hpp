#pragma once
/// Describes the CPU as a target of the compiler. A chip is one core. It is estimated to move 20
/// GB/s, and to take 0.2 to 0.5 ns per element for a function such as exp (decision 0046).

#include "spmd/target/target.hpp"

namespace weft {

inline constexpr Target kCpuTarget{
    .name = "cpu",
    .tile_elements = 256,  // 1 KiB of f32, so that some twenty tiles fit in the first-level cache
    .compiled_dtypes = {DType::f32, DType::bf16, DType::i32, DType::u32, DType::pred},
    .element_costs =
        {.simple = 0.6, .division = 2, .function = 6, .long_function = -1, .half_result = 2},
    .recomputed_bytes_min = 65536,
    .features_last = true,
    .shared_bytes_min = 65536,
    .overlap_work_min = 1 << 18,   // about 20 us, in which a thread wakes up
    .overlap_bytes_max = 1 << 28,  // 10 ms of a line of 100 Gbit/s, in each direction
    .has_host_address = true,
    .keeps_memory = true,
};

}  // namespace weft
