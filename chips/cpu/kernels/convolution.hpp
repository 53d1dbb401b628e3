#pragma once
/// The kernel of convolution. oneDNN computes f32 and bf16, plain loops compute other dtypes. f16
/// is computed in f32, and so is bf16 if oneDNN can't multiply it or trusts_bf16() is false.

#include "chips/cpu/onednn/onednn_convolution.hpp"

namespace weft::kernels {

ConvolutionMethod convolution_method(const Program& program, OpId op);

/// Makes the kernel of a convolution. Its `run` is empty if the dtype isn't supported.
Kernel convolution(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
