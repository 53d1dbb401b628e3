#pragma once
/// Losses (torch.nn.functional), of global tensors however they are sharded.

#include <cstdint>
#include <optional>

#include <weft/ops.hpp>

namespace weft {

struct LossOptions {
  /// Weights of the rows, such as Batch::weight(): as the input's shape begins, for all elements of
  /// the row. The mean is sum(weight * loss) / sum(weight). Undefined: all are 1.
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;
};

// Of two tensors of one type.
Tensor mse_loss(Operand input, const Tensor& target, const LossOptions& options = {});
Tensor l1_loss(Operand input, const Tensor& target, const LossOptions& options = {});

struct SmoothL1Options {
  double beta = 1;  ///< from here on linear; 0: everywhere
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;
};
/// (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2.
Tensor smooth_l1_loss(Operand input, const Tensor& target, const SmoothL1Options& options = {});

struct HuberOptions {
  double delta = 1;  ///< from here on linear
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;
};
/// (x - y)^2 / 2 where |x - y| <= delta, else delta (|x - y| - delta / 2).
Tensor huber_loss(Operand input, const Tensor& target, const HuberOptions& options = {});

/// -(y log x + (1 - y) log(1 - x)) of probabilities x and targets from 0 to 1; as in torch, no
/// logarithm is below -100. The gradient is 0 where it would be. See the next, which is exact.
Tensor binary_cross_entropy(Operand input, const Tensor& target, const LossOptions& options = {});

struct BinaryCrossEntropyOptions {
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;
  Tensor
      pos_weight{};  ///< a factor of the targets' part that broadcasts: for each class, [classes]
};
/// binary_cross_entropy of sigmoid(logits), for logits of any size.
Tensor binary_cross_entropy_with_logits(Operand logits, const Tensor& target,
                                        const BinaryCrossEntropyOptions& options = {});

struct KlDivOptions {
  bool log_target = false;  ///< the targets are logarithms, too
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;  ///< batch_mean is the divergence of rows
};
/// target (log(target) - input) for log-probabilities `input` (S. Kullback, R. Leibler, 1951).
Tensor kl_div(Operand input, const Tensor& target, const KlDivOptions& options = {});

// Of classes, in the last dim.

struct CrossEntropyOptions {
  /// Labels with this value are left out, of the mean too. Default: -100, as in torch, if the
  /// labels come from a to_device() of the same trace that contains it; else none.
  std::optional<std::int32_t> ignore_index{};
  Tensor sample_weight{};  ///< as LossOptions', of the labels
  /// [classes]: a factor of the loss of each class; the mean divides by the sum of those of the
  /// labels.
  Tensor weight{};
  /// This much of each label is spread evenly over all classes (C. Szegedy et al., 2016).
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
};
/// -log_softmax(logits)[label]; logits [..., classes], labels [...] of i32 or i64, from 0 to
/// classes - 1. Another label ends the run, with its value and the line of this call. Labels of the
/// logits' type are probabilities of the classes: -sum(label * log_softmax(logits)).
Tensor cross_entropy(Operand logits, const Tensor& labels, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  std::optional<std::int32_t> ignore_index{};  ///< these as CrossEntropyOptions'
  Tensor sample_weight{};
  Tensor weight{};
  Reduction reduction = Reduction::mean;
};
/// As cross_entropy, of log-probabilities [..., classes]: -input[label].
Tensor nll_loss(Operand input, const Tensor& labels, const NllLossOptions& options = {});

// Of vectors.

/// a.b / (max(|a|, eps) max(|b|, eps)) along dim; a and b broadcast.
Tensor cosine_similarity(Operand a, const Tensor& b, int dim = 1, double eps = 1e-8);

struct CosineEmbeddingOptions {
  double margin = 0;
  Tensor sample_weight{};
  Reduction reduction = Reduction::mean;
};
/// For a and b [..., size] and targets [...] of 1 and -1: 1 - cos(a, b) where the target is 1, else
/// max(0, cos(a, b) - margin).
Tensor cosine_embedding_loss(Operand a, const Tensor& b, const Tensor& target,
                             const CosineEmbeddingOptions& options = {});

}  // namespace weft
