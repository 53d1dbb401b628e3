#pragma once
/// The compiler's target for chips that are the CPU's cores, driven through a PJRT plug-in.

#include "spmd/stablehlo/stablehlo_target.hpp"

namespace weft {

/// Differs from other targets of StableHLO because the chip's memory is the arena.
inline constexpr Target kPjrtCpuTarget = [] {
  Target target = kStableHloTarget;
  target.name = "pjrt-cpu";
  target.has_host_address = true;
  target.keeps_memory = true;
  return target;
}();

}  // namespace weft
