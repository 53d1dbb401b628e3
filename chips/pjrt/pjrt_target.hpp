#pragma once
/// Describes the cores of the CPU, driven through a PJRT plug-in, as a target of the compiler.

#include "spmd/stablehlo/stablehlo_target.hpp"

namespace weft {

/// The plug-in compiles the program, as for other targets of StableHLO, but the chip's memory is
/// the arena.
inline constexpr Target kPjrtCpuTarget = [] {
  Target target = kStableHloTarget;
  target.name = "pjrt-cpu";
  target.has_host_address = true;
  target.keeps_memory = true;
  return target;
}();

}  // namespace weft
