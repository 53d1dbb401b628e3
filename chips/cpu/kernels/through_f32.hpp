#pragma once
/// bf16 and f16 operands and results of kernels that compute in f32.

#include "chips/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Converts bf16 and f16 operands for `inner`, which takes and returns f32, and rounds each element
/// of its result once. If `inner` has no `run`, the resulting kernel has none either.
Kernel through_f32(const Program& program, OpId op, const Kernel& inner);

}  // namespace weft::kernels
