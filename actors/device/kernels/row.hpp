#pragma once
/// Ops on rows, along the last dim.

#include <weft/actors/device/kernels/kernel.hpp>

namespace weft::kernels {

// A row is read once from memory and worked on in a buffer; bf16 is computed in f32 and rounded
// once. A row's result depends on its elements alone.

/// softmax, log_softmax, normalize and their gradients.
Kernel row_op(const Program& program, OpId op);

/// cross_entropy and cross_entropy_grad.
Kernel cross_entropy(const Program& program, OpId op);

}  // namespace weft::kernels
