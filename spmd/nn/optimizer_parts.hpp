#pragma once
/// Declares what the optimizers and their state share. Only the files of this folder use it.

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
/// computed from such a gradient, goes to its own parameter; any other goes to the parameter at its
/// place in the list. Throws invalid_argument, naming the parameter, unless each parameter that is
/// trained has exactly one gradient, of its type.
std::vector<Tensor> matched_gradients(Call& call, std::span<const Tensor> grads,
                                      std::span<const Parameter> parameters);
/// Returns `value` as the gradient of the same parameter and of the same loss as `grad`.
Tensor in_place_of(const Tensor& grad, const Tensor& value);
/// Returns false for the zero gradient of a parameter that the loss doesn't depend on.
bool is_used(const Tensor& grad);

/// Returns the sharding of a tensor of shape `to`, given that of a tensor of shape `from`. The
/// shapes differ only in dims that have size 1 in `to`; these aren't sharded.
Sharding sharding_of_reduced(Sharding sharding, const Shape& from, const Shape& to);
/// Requests the parameter's sharding for state that is neither marked nor on the chips yet.
void follow_sharding(const Parameter& state, const Parameter& parameter);

/// Returns the gradient plus L2 decay of the parameter.
Tensor decayed(const Tensor& grad, const Parameter& parameter, double weight_decay);
/// Replaces `average` by the next moving average of ones and returns it: 1 - beta^step, by which
/// Adam divides its averages.
Tensor advance(Parameter average, double beta);
/// Returns the parameter's present value, which later assignments don't change.
Tensor present(Call& call, const Parameter& parameter);

}  // namespace weft
