#pragma once
/// bf16 operands and results of kernels that compute in f32.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// `inner` takes and gives f32 where the op has bf16; each element is rounded once. An `inner`
/// without `run` stays so.
Kernel through_f32(const Program& program, OpId op, const Kernel& inner);

}  // namespace weft::kernels
