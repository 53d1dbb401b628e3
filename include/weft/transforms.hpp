#pragma once
/// Ways to compute a part of a model: mixed precision, rematerialisation, micro-batches.

#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/module.hpp>
#include <weft/tensor.hpp>
#include <weft/type.hpp>

namespace weft {

// Mixed precision (torch.autocast): parameters stay f32, matrix products are of bf16.

class Trace;

/// While it lives, matmul, linear, conv2d and attention of this thread take their f32 operands as
/// `dtype` and give it, with sums in f32; norms, softmax and losses take their operands as f32; of
/// two operands of different floating dtypes an op converts the narrower one. Gradients are of the
/// tensors' own dtypes, and bf16 has f32's range: there is no loss to scale. Throws
/// invalid_argument for a dtype but bf16 and f32, which switches it off.
class AutocastScope {
 public:
  explicit AutocastScope(DType dtype, std::source_location loc = std::source_location::current());
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  Trace& trace_;
  std::optional<DType> before_;
};

/// What `function` returns, called in an AutocastScope.
template <typename Function>
auto autocast(DType dtype, Function&& function,
              std::source_location loc = std::source_location::current()) {
  const AutocastScope scope(dtype, loc);
  return std::forward<Function>(function)();
}

// Rematerialisation (torch.utils.checkpoint, jax.checkpoint): what a part of the model computes is
// computed again for the backward pass instead of being kept.

class Trace;

struct CheckpointOptions {
  bool save_dots = false;  ///< results of matrix products and convolutions are kept
  /// Results that checkpoint_name() has given one of these names are kept.
  std::vector<std::string> save_names = {};
};

/// The ops recorded while a scope lives are one region, which gradients taken later recompute. A
/// scope within another is part of the outer one.
class CheckpointScope {
 public:
  explicit CheckpointScope(CheckpointOptions options = {},
                           std::source_location loc = std::source_location::current());
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope&) = delete;
  CheckpointScope& operator=(const CheckpointScope&) = delete;

 private:
  Trace& trace_;
  bool outermost_;
};

/// Returns the result of `function`. Gradients are bit for bit those without checkpoint(), because
/// the operations are the same. One region's intermediate values are in memory at a time.
template <typename Function>
auto checkpoint(Function&& function, CheckpointOptions options = {},
                std::source_location loc = std::source_location::current()) {
  const CheckpointScope scope(std::move(options), loc);
  return std::forward<Function>(function)();
}

/// Names x for CheckpointOptions::save_names; returns it.
Tensor checkpoint_name(const Tensor& x, const std::string& name,
                       std::source_location loc = std::source_location::current());

// Gradient accumulation: a batch in parts, for the memory of one part.

struct LossAndGradients {
  Tensor loss;                ///< the mean over the parts
  std::vector<Tensor> grads;  ///< of that, by parameter
};

/// Returns `loss` (a mean over the rows that it is given) and its gradients over `batch`. The
/// tensors of `batch` are split along dim 0 into `count` micro-batches, computed one after another.
/// Part k has rows k, k + count, k + 2 count, ..., so that each chip splits its own rows. Gradients
/// stay partial sums until the last part, and are reduced over the chips once. Throws
/// invalid_argument for a batch that `count` doesn't divide.
LossAndGradients micro_batches(std::int64_t count, std::span<const Tensor> batch,
                               std::span<const Parameter> parameters,
                               const std::function<Tensor(std::span<const Tensor>)>& loss,
                               std::source_location loc = std::source_location::current());

}  // namespace weft
