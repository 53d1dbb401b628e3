#pragma once
/// The compiler's targets for chips with memory of their own, which a PJRT plug-in drives.

#include "spmd/stablehlo/stablehlo_target.hpp"

namespace weft {

/// Returns a target with `keeps_memory`, because the job's versions of the state are copied to the
/// arena (accelerator_engine.hpp), which outlives the process that drives the chips.
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
