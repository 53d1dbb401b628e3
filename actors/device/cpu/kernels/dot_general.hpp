#pragma once
/// dot_general: by oneDNN in f32 (bf16 goes through f32), by plain loops in other dtypes.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Empty `run`: no kernel for the dtype.
Kernel dot_general(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
