#pragma once
/// convolution: by oneDNN in f32 (bf16 goes through f32), by plain loops in other dtypes.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

/// What of oneDNN a convolution is made of: gradients of ordinary convolutions are its backward
/// primitives. loops: plain ones, for what oneDNN has no form.
enum class ConvolutionMethod { forward, backward_data, backward_weights, loops };
ConvolutionMethod convolution_method(const Program& program, OpId op);

/// Empty `run`: no kernel for the dtype.
Kernel convolution(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
