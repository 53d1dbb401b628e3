#pragma once
/// Ops that make their elements: fills, other constants, iota.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

/// Of an op for which Program::is_fill.
Kernel fill(const Program& program, OpId op);

/// Other constants and iota. The planner may give a constant's place to another value after its
/// last use, so constants are written in every run, as any op.
Kernel leaf(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
