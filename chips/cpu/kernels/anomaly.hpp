#pragma once
/// Kernels that check their results for NaN and infinity.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Runs the op's kernel. Then throws invalid_argument, with op, type and line, if its result has a
/// NaN that no operand has, or an infinity although all operands are finite. A NaN from outside the
/// plan's kernels (an input, another chip) is reported where it is first read.
Kernel checked(Kernel kernel, const Program& program, OpId op);

}  // namespace weft::kernels
