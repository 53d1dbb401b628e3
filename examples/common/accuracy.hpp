#pragma once
/// Computes the accuracy of a classifier on a dataset.

#include <functional>

#include <weft/weft.hpp>

namespace examples {

/// Returns the share of the loader's items for which the largest logit is that of the label (field
/// "y"). `logits` maps field "x" to logits. Ends no step.
double accuracy(weft::DeviceLoader& loader,
                const std::function<weft::Tensor(const weft::Tensor&)>& logits);

}  // namespace examples
