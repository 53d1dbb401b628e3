#pragma once
/// Rematerialisation (torch.utils.checkpoint, jax.checkpoint): what a part of the model computes is
/// computed again for the backward pass instead of being kept.

#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <weft/spmd/tensor/tensor.hpp>

namespace weft {

class Trace;

struct CheckpointOptions {
  bool save_dots = false;  ///< results of matrix products and convolutions are kept
  /// Results that checkpoint_name() has given one of these names are kept.
  std::vector<std::string> save_names = {};
};

/// What is recorded while it lives is one region of the gradients taken later; within another scope
/// it is part of that one.
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

/// What `function` returns. Gradients are bit for bit those without it: they take the same
/// operations. Memory for the values within is needed once for each region, not for all at once.
template <typename Function>
auto checkpoint(Function&& function, CheckpointOptions options = {},
                std::source_location loc = std::source_location::current()) {
  const CheckpointScope scope(std::move(options), loc);
  return std::forward<Function>(function)();
}

/// Names x for CheckpointOptions::save_names; returns it.
Tensor checkpoint_name(const Tensor& x, const std::string& name,
                       std::source_location loc = std::source_location::current());

}  // namespace weft
