#pragma once
/// The accuracy of a classifier on a dataset.

#include <functional>

#include <weft/weft.hpp>

namespace examples {

/// Returns the share of the loader's items whose row of logits has its largest entry at the label
/// (field "y"). `logits` takes field "x". Ends no step.
double accuracy(weft::DeviceLoader& loader,
                const std::function<weft::Tensor(const weft::Tensor&)>& logits);

}  // namespace examples
