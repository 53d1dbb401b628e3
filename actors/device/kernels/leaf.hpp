#pragma once
/// Ops without operands: constant, iota.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

/// Fills the result. The planner may give a constant's place to another value after its last use,
/// so constants are written in every run, as any op.
Kernel leaf(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
