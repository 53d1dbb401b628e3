#pragma once
/// Makes targets for tests: the CPU's target with other thresholds, and the targets of the
/// reference engines.

#include <cstdint>

#include "chips/cpu/cpu_target.hpp"

namespace weft::testing {

struct Thresholds {
  std::int64_t shared_bytes_min = kCpuTarget.shared_bytes_min;
  std::int64_t recomputed_bytes_min = kCpuTarget.recomputed_bytes_min;
  std::int64_t overlap_work_min = kCpuTarget.overlap_work_min;
  std::int64_t overlap_bytes_max = kCpuTarget.overlap_bytes_max;
};
inline Target cpu_target_with(const Thresholds& thresholds) {
  Target target = kCpuTarget;
  target.shared_bytes_min = thresholds.shared_bytes_min;
  target.recomputed_bytes_min = thresholds.recomputed_bytes_min;
  target.overlap_work_min = thresholds.overlap_work_min;
  target.overlap_bytes_max = thresholds.overlap_bytes_max;
  return target;
}

/// The target of a chip that runs the same plans as the CPU, but has its own memory.
inline constexpr Target kReferenceTarget = [] {
  Target target = kCpuTarget;
  target.name = "reference";
  target.has_host_address = false;
  target.keeps_memory = false;
  return target;
}();

/// A target that differs from the CPU's in every field.
inline constexpr Target kContraryTarget{
    .name = "contrary",
    .tile_elements = 0,
    .compiled_dtypes = {DType::f64, DType::f16, DType::i64, DType::i8, DType::u8},
    .element_costs =
        {.simple = -1, .division = -1, .function = -1, .long_function = 1, .half_result = 0},
    .recomputed_bytes_min = Target::kNever,
    .features_last = false,
    .shared_bytes_min = Target::kNever,
    .overlap_work_min = Target::kNever,
    .overlap_bytes_max = 0,
    .has_host_address = false,
    .keeps_memory = false,
};

}  // namespace weft::testing
