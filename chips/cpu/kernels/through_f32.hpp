#pragma once
/// through_f32(): makes a kernel on bf16 or f16 from a kernel on f32.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Returns a kernel that converts bf16 and f16 operands to f32, runs `inner` on them, and rounds
/// each element of the result once. If `inner` has no `run`, the returned kernel has none either.
Kernel through_f32(const Program& program, OpId op, const Kernel& inner);

}  // namespace weft::kernels
