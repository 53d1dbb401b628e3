#pragma once
/// What the optimizers and the state that goes with them share. For the files of this folder.

#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>

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
/// Throws invalid_argument unless there is a gradient of its type for each parameter that is
/// trained.
void expect_gradients(Call& call, std::span<const Tensor> grads,
                      std::span<const Parameter> parameters);

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
