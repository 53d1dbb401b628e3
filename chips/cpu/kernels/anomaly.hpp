#pragma once
/// checked(): makes a kernel check its result for NaN and infinity.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Returns a kernel that runs `kernel`, then throws invalid_argument, with op, type and line, if
/// the result has a NaN but no operand does, or an infinity although all operands are finite. A NaN
/// that no kernel of the plan made (in an input or from another chip) is reported where it is first
/// read.
Kernel checked(Kernel kernel, const Program& program, OpId op);

}  // namespace weft::kernels
