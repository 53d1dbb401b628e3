#pragma once
/// Kernels that look for NaN and infinity in what they compute.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The kernel of the op; then throws invalid_argument, naming op, type and line, where its result
/// has a NaN that no operand has, or an infinity of finite operands. A NaN that comes from outside
/// of the plan's kernels (an input, another chip) is named where it is read first.
Kernel checked(Kernel kernel, const Program& program, OpId op);

}  // namespace weft::kernels
