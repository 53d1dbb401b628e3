#pragma once
/// Makes initial values of state (like torch.nn.init). An initial value is a function of the seed
/// (random.hpp), the tensor's name and the element's number, so it is the same on every worker and
/// mesh. Elements are computed only when a chip or a read needs them, so values that a checkpoint
/// or an interrupted training loop replaces cost nothing.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <weft/nn/module.hpp>

#include "spmd/tensor/tensor_source.hpp"

namespace weft {

/// A function that writes the elements of `out`, whose row-major numbers in the tensor begin with
/// `first`.
using MakeElements = std::function<void(std::uint64_t first, std::span<float> out)>;

/// Returns a source whose elements all equal `value`.
SourcePtr constant_values(const TensorType& type, double value);
/// Returns a source whose elements `make` writes. `about` describes the values: other values for
/// the same tensor must have another text.
SourcePtr made_values(const TensorType& type, const std::string& about, MakeElements make);
/// Returns a function that makes uniform values in [-bound, bound).
MakeElements uniform_elements(std::string_view name, double bound);
/// Returns a function that makes normal values, by Box and Muller's method.
MakeElements normal_elements(std::string_view name, double mean, double standard_deviation);

/// Sets the initial values of a parameter that nothing has used yet, and returns the parameter.
Parameter begin_with(Parameter parameter, const std::string& about, MakeElements make);
Parameter begin_uniform(Parameter parameter, double bound);

}  // namespace weft
