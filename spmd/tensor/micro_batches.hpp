#pragma once
/// Gradient accumulation: a batch in parts, for the memory of one part.

#include <functional>
#include <source_location>
#include <span>
#include <vector>

#include <weft/spmd/tensor/module.hpp>

namespace weft {

struct LossAndGradients {
  Tensor loss;                ///< the mean over the parts
  std::vector<Tensor> grads;  ///< of that, by parameter
};

/// `loss` (a mean over the rows that it is given) and its gradients over `batch`, whose tensors are
/// cut along dim 0 into `count` micro-batches that are computed one after another: part k has rows
/// k, k + count, k + 2 count, ..., so that each chip cuts the rows that it has. What a chip has
/// gathered of a gradient stays a partial sum until the last part: it is reduced over the chips
/// once. Throws invalid_argument for a batch that `count` doesn't divide.
LossAndGradients micro_batches(std::int64_t count, std::span<const Tensor> batch,
                               std::span<const Parameter> parameters,
                               const std::function<Tensor(std::span<const Tensor>)>& loss,
                               std::source_location loc = std::source_location::current());

}  // namespace weft
