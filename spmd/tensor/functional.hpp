#pragma once
/// What models are made of, as functions (torch.nn.functional).

#include <optional>

#include <weft/spmd/tensor/ops.hpp>

namespace weft {

/// torch.matmul for 2-d and batched operands of equal batch dims.
Tensor matmul(Operand a, Operand b);
/// x[..., in] * weight[out, in]^T + bias[out]; bias may be an empty tensor.
Tensor linear(Operand x, const Tensor& weight, const Tensor& bias);

/// torch's gelu(approximate="tanh"): 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Tensor gelu(Operand x);
Tensor silu(Operand x);  ///< x * sigmoid(x)
Tensor log_softmax(Operand x, int dim = -1);
Tensor softmax(Operand x, int dim = -1);

/// torch.nn.functional.layer_norm over the last dims, those of `weight`: (x - mean) / sqrt(variance
/// + eps) * weight + bias; bias may be an empty tensor.
Tensor layer_norm(Operand x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dims, those of `weight` (B. Zhang, R. Sennrich,
/// 2019).
Tensor rms_norm(Operand x, const Tensor& weight, double eps = 1e-6);

struct AttentionOptions {
  bool causal = false;                         ///< query i sees keys 0 to i
  std::optional<double> scale = std::nullopt;  ///< of the scores; 1/sqrt(K) by default
};
/// torch's scaled_dot_product_attention: softmax(q k^T * scale) v for q[B,H,S,K], k[B,H,T,K] and
/// v[B,H,T,E]; gives [B,H,S,E].
Tensor attention(Operand q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

/// torch.nn.functional.embedding: weight[index] along dim 0, index i32 of any shape; index.shape +
/// the weight's other dims. An index outside gives zeros (values on chips can't be checked when it
/// is traced).
Tensor embedding(Operand weight, const Tensor& index);
/// Each element is 0 with probability p, else x / (1 - p); numbers as in random.hpp. x is floating.
/// For training only: leave it out in evaluation.
Tensor dropout(Operand x, double p = 0.5);

// Losses: the mean over the elements of the global tensors, f32[].

/// Mean of -log_softmax(logits)[label]; logits [..., classes], labels i32[...] from 0 to classes -
/// 1: another label adds 0 to the sum (values on chips can't be checked when it is traced).
Tensor cross_entropy(Operand logits, const Tensor& labels);
Tensor mse_loss(Operand input, const Tensor& target);
Tensor l1_loss(Operand input, const Tensor& target);
/// torch's binary_cross_entropy_with_logits, targets from 0 to 1.
Tensor binary_cross_entropy_with_logits(Operand logits, const Tensor& target);

}  // namespace weft
