#pragma once
/// What models are made of, as functions (torch.nn.functional).

#include <weft/spmd/tensor/ops.hpp>

namespace weft {

/// torch.matmul for 2-d and batched operands of equal batch dims.
Tensor matmul(Operand a, Operand b);
/// x[..., in] * weight[out, in]^T + bias[out]; bias may be an empty tensor.
Tensor linear(Operand x, const Tensor& weight, const Tensor& bias);
Tensor log_softmax(Operand x, int dim = -1);
Tensor softmax(Operand x, int dim = -1);
/// torch.nn.functional.embedding: weight[index] along dim 0, index i32 of any shape; index.shape +
/// the weight's other dims. An index outside gives zeros (values on chips can't be checked when it
/// is traced).
Tensor embedding(Operand weight, const Tensor& index);
/// Each element is 0 with probability p, else x / (1 - p); numbers as in random.hpp. x is floating.
/// For training only: leave it out in evaluation.
Tensor dropout(Operand x, double p = 0.5);
/// Mean over the global batch of -log_softmax(logits)[label]; logits f32[B,C], labels i32[B] from 0
/// to C - 1: another label adds 0 to the sum (values on chips can't be checked when it is traced).
Tensor cross_entropy(Operand logits, const Tensor& labels);

}  // namespace weft
