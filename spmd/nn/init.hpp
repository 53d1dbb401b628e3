#pragma once
/// Initial values of state (torch.nn.init). They are functions of the seed (random.hpp), the
/// tensor's name and the element's number, and so are the same on every worker and mesh. Elements
/// are made when a chip or a read needs them. Values that an interrupted loop or a checkpoint
/// replaces cost nothing.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <weft/nn/module.hpp>

#include "spmd/tensor/tensor_source.hpp"

namespace weft {

/// Makes the elements beginning with number `first`, in row-major order.
using MakeElements = std::function<void(std::uint64_t first, std::span<float> out)>;

/// Returns values that all equal `value`.
SourcePtr constant_values(const TensorType& type, double value);
/// `about` distinguishes the values from other values that the same tensor could have.
SourcePtr made_values(const TensorType& type, const std::string& about, MakeElements make);
/// Returns values that are uniform in [-bound, bound).
MakeElements uniform_elements(std::string_view name, double bound);
/// Returns normal values, by Box and Muller's method.
MakeElements normal_elements(std::string_view name, double mean, double standard_deviation);

/// Gives these values to a parameter that nothing has used yet, and returns it.
Parameter begin_with(Parameter parameter, const std::string& about, MakeElements make);
Parameter begin_uniform(Parameter parameter, double bound);

}  // namespace weft
