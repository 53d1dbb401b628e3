#pragma once
/// Initial values of state (torch.nn.init): functions of the seed (random.hpp), the tensor's name
/// and the element's number, so that they are the same on every worker and mesh. Elements are made
/// where a chip, or a read, needs them, so that values which an interrupted loop or a checkpoint
/// replaces cost nothing.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <weft/module.hpp>

#include "spmd/tensor/tensor_source.hpp"

namespace weft {

/// Makes the elements from number `first` on, in row-major order.
using MakeElements = std::function<void(std::uint64_t first, std::span<float> out)>;

/// All elements are `value`.
SourcePtr constant_values(const TensorType& type, double value);
/// `about` tells the values from other ones that the same tensor could have.
SourcePtr made_values(const TensorType& type, const std::string& about, MakeElements make);
/// Uniform in [-bound, bound).
MakeElements uniform_elements(std::string_view name, double bound);
/// Normal, by Box and Muller's method.
MakeElements normal_elements(std::string_view name, double mean, double standard_deviation);

/// Gives a parameter that nothing has used yet these values, and returns it.
Parameter begin_with(Parameter parameter, const std::string& about, MakeElements make);
Parameter begin_uniform(Parameter parameter, double bound);

}  // namespace weft
