#pragma once
/// convolution: by oneDNN in f32 and bf16 (f16, and bf16 where it can't or isn't trusted to
/// multiply it, go through f32), by plain loops in other dtypes.

#include "chips/cpu/onednn/onednn_convolution.hpp"

namespace weft::kernels {

ConvolutionMethod convolution_method(const Program& program, OpId op);

/// Returns an empty `run` if there is no kernel for the dtype.
Kernel convolution(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
