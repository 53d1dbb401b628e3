#pragma once
/// What the optimizers and the state that goes with them share. For the files of this folder.

#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <weft/module.hpp>

#include "spmd/mesh/sharding.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct NumberOption {
  std::string_view name;
  double value;
  double limit = kInfinity;
};
/// Throws invalid_argument for an option of the optimizer that isn't at least 0 and below its
/// limit.
void expect_options(std::string_view optimizer, std::initializer_list<NumberOption> options);
/// The gradients in the order of the parameters. A gradient that grad() made, or weft of it, goes
/// to its own parameter; one that was computed otherwise to the parameter of its place. Throws
/// invalid_argument, naming the parameter, unless each that is trained has one of its type, and
/// none two.
std::vector<Tensor> matched_gradients(Call& call, std::span<const Tensor> grads,
                                      std::span<const Parameter> parameters);
/// Makes `value` the gradient that `grad` was: of its parameter, and of the mean of its loss.
Tensor in_place_of(const Tensor& grad, const Tensor& value);
/// False for the gradient, zeros, of a parameter that the loss doesn't depend on.
bool is_used(const Tensor& grad);

/// The sharding of a tensor that has this one's dims, except that some are 1.
Sharding sharding_of_reduced(Sharding sharding, const Shape& from, const Shape& to);
/// State that nobody marked, and that isn't on the chips yet, is asked for as its parameter is or
/// lies.
void follow_sharding(const Parameter& state, const Parameter& parameter);

/// The gradient with L2 decay of the parameter.
Tensor decayed(const Tensor& grad, const Parameter& parameter, double weight_decay);
/// Moves the average of ones by a step: 1 - beta^step, by which Adam corrects its averages.
Tensor advance(Parameter average, double beta);
/// The value that it has now, whatever is assigned to it later.
Tensor present(Call& call, const Parameter& parameter);

}  // namespace weft
