#pragma once
/// Describes chips with memory of their own, which a PJRT plug-in drives, as targets of the
/// compiler.

#include "spmd/stablehlo/stablehlo_target.hpp"

namespace weft {

/// The versions of the state that a job keeps are copied to the arena (accelerator_engine.hpp), so
/// they outlive the process that drives the chips.
constexpr Target accelerator_target(std::string_view name) {
  Target target = kStableHloTarget;
  target.name = name;
  target.keeps_memory = true;
  return target;
}
inline constexpr Target kGpuTarget = accelerator_target("gpu");
inline constexpr Target kTpuTarget = accelerator_target("tpu");
inline constexpr Target kPjrtMirroredTarget = accelerator_target("pjrt-mirrored");

}  // namespace weft
