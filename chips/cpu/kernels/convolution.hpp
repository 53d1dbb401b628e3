#pragma once
/// convolution: oneDNN computes f32 and bf16, and plain loops compute other dtypes. f16 goes
/// through f32, and so does bf16 if oneDNN can't multiply it or isn't trusted to.

#include "chips/cpu/onednn/onednn_convolution.hpp"

namespace weft::kernels {

ConvolutionMethod convolution_method(const Program& program, OpId op);

/// Returns an empty `run` if there is no kernel for the dtype.
Kernel convolution(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
