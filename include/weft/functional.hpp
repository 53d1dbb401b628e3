#pragma once
/// Building blocks of models as functions (torch.nn.functional).

#include <cstdint>
#include <optional>

#include <weft/convolution.hpp>
#include <weft/ops.hpp>
#include <weft/products.hpp>

namespace weft {

/// x[..., in] * weight[out, in]^T + bias[out]; bias may be an empty tensor.
Tensor linear(Operand x, const Tensor& weight, const Tensor& bias);

/// torch's gelu: x (1 + erf(x / sqrt(2))) / 2, or with approximate="tanh"
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as GPT-2 has it.
enum class Gelu : std::uint8_t { exact, tanh };
Tensor gelu(Operand x, Gelu approximate = Gelu::exact);
Tensor silu(Operand x);  ///< x * sigmoid(x)
Tensor leaky_relu(Operand x, double negative_slope = 0.01);
Tensor elu(Operand x, double alpha = 1);  ///< alpha (e^x - 1) where x is negative
Tensor mish(Operand x);                   ///< x * tanh(softplus(x))
Tensor hardsigmoid(Operand x);            ///< clamp(x / 6 + 1/2, 0, 1)
Tensor hardswish(Operand x);              ///< x * hardsigmoid(x)
Tensor log_softmax(Operand x, int dim = -1);
Tensor softmax(Operand x, int dim = -1);

/// torch.nn.functional.layer_norm over the last dims, those of `weight`: (x - mean) / sqrt(variance
/// + eps) * weight + bias; bias may be an empty tensor.
Tensor layer_norm(Operand x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dims, those of `weight` (B. Zhang, R. Sennrich,
/// 2019).
Tensor rms_norm(Operand x, const Tensor& weight, double eps = 1e-6);

struct BatchStatistics {
  Tensor mean;      ///< [C]
  Tensor variance;  ///< [C], of the batch (biased)
};
/// Mean and variance of x[N,C,...] over all dims but C, of the global batch, however it is sharded
/// (torch's SyncBatchNorm).
BatchStatistics batch_statistics(Operand x);
/// torch.nn.functional.batch_norm of x[N,C,...]: (x - mean) / sqrt(variance + eps) * weight[C] +
/// bias[C]; weight and bias may be empty tensors. Pass the batch's own statistics in training, and
/// running averages of them in evaluation, or use the layers of norm_layers.hpp.
Tensor batch_norm(Operand x, const BatchStatistics& statistics, const Tensor& weight,
                  const Tensor& bias, double eps = 1e-5);

/// Rotary position embedding (J. Su et al., 2021) of x[...,S,K], K even: at position s the pair
/// (x[i], x[i + K/2]) is rotated by the angle s * base^(-2i/K), with the pairs of GPT-NeoX. The
/// chips compute the angles in f64; layers with equal angles share them.
Tensor rope(Operand x, double base = 10000);

struct AttentionOptions {
  bool causal = false;                         ///< query i sees keys 0 to i
  std::optional<double> scale = std::nullopt;  ///< multiplies the scores; default 1/sqrt(K)
};
/// torch's scaled_dot_product_attention: softmax(q k^T * scale) v for q[B,H,S,K], k[B,H,T,K] and
/// v[B,H,T,E]; returns [B,H,S,E].
Tensor attention(Operand q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

/// torch.nn.functional.embedding: weight[index] along dim 0, for an i32 index of any shape. The
/// result's shape is index.shape + the weight's other dims. An index out of range ends the run; the
/// message has its value and this call's line.
Tensor embedding(Operand weight, const Tensor& index);
/// Each element becomes 0 with probability p, else x / (1 - p); the random numbers are those of
/// ops.hpp. x is floating. For training only: don't call it in evaluation.
Tensor dropout(Operand x, double p = 0.5);

}  // namespace weft
