#pragma once
/// Declares functions that several optimizers use. Only the files of this folder use them.

#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <weft/nn/module.hpp>

#include "spmd/mesh/sharding.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct NumberOption {
  std::string_view name;
  double value;
  double limit = kInfinity;
};
/// Throws invalid_argument unless each of the options is at least 0 and below its limit.
void expect_options(std::string_view optimizer, std::initializer_list<NumberOption> options);
/// Returns the gradients in the order of the parameters. A gradient that grad() made, or that weft
/// computed from such a gradient, goes to its own parameter; any other goes to the parameter with
/// the same index. Throws invalid_argument, naming the parameter, unless each parameter that is
/// trained has exactly one gradient, of the parameter's type.
std::vector<Tensor> matched_gradients(Call& call, std::span<const Tensor> grads,
                                      std::span<const Parameter> parameters);
/// Marks `value` as a gradient of the same parameter and the same loss as `grad`, and returns it.
Tensor in_place_of(const Tensor& grad, const Tensor& value);
/// Returns false for the zero gradient of a parameter that the loss doesn't depend on.
bool is_used(const Tensor& grad);

/// Returns the sharding of a tensor of shape `to`, given the sharding of a tensor of shape `from`.
/// The shapes differ only in dims that have size 1 in `to`. In the result, these dims aren't
/// sharded.
Sharding sharding_of_reduced(Sharding sharding, const Shape& from, const Shape& to);
/// Requests the parameter's sharding for state that is neither marked nor on the chips yet.
void follow_sharding(const Parameter& state, const Parameter& parameter);

/// Returns grad + weight_decay * parameter, which adds L2 decay to the gradient.
Tensor decayed(const Tensor& grad, const Parameter& parameter, double weight_decay);
/// Advances `average`, the moving average of ones, by one step and returns its new value 1 -
/// beta^step, by which Adam divides its averages.
Tensor advance(Parameter average, double beta);
/// Returns a tensor with the parameter's present value, which later assignments don't change.
Tensor present(Call& call, const Parameter& parameter);

}  // namespace weft
