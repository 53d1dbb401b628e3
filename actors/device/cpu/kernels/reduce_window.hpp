#pragma once
/// reduce_window and select_and_scatter: plain loops; bf16 is summed in f32.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Empty `run`: no kernel for the dtype.
Kernel reduce_window(const Program& program, OpId op);
Kernel select_and_scatter(const Program& program, OpId op);

}  // namespace weft::kernels
