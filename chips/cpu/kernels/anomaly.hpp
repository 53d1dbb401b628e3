#pragma once
/// checked(): makes a kernel check its result for NaN and infinity.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Returns a kernel that runs `kernel`, and then throws invalid_argument, with op, type and line,
/// if the result has a NaN although no operand has one, or an infinity although all operands are
/// finite. If an operand that no kernel of the plan computes (an input, or the result of a
/// collective) has a NaN, it throws before the run.
Kernel checked(Kernel kernel, const Program& program, OpId op);

}  // namespace weft::kernels
