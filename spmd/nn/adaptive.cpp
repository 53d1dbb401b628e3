#include <weft/optim/adaptive.hpp>

#include <array>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {

RMSprop::RMSprop(const std::vector<Parameter>& parameters, const Options& options,
                 std::source_location loc)
    : RMSprop({{parameters, options}}, loc) {}

RMSprop::RMSprop(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("RMSprop") {
  for (const auto& [parameters, options] : groups) {
    expect_options("RMSprop", {{"alpha", options.alpha},
                               {"eps", options.eps},
                               {"weight_decay", options.weight_decay},
                               {"momentum", options.momentum}});
    options_.push_back(options);
    std::vector<const char*> states{"square_avg"};
    if (options.momentum > 0) states.push_back("momentum_buffer");
    if (options.centered) states.push_back("grad_avg");
    add_group(parameters, options.lr, options.maximize, states);
  }
  expect_parameters(loc);
}

void RMSprop::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared /*shared*/) {
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  const Tensor g = decayed(grad, p, options.weight_decay);
  const auto move = [&](Parameter& average, const Tensor& value) {
    average.assign(average * options.alpha + value * (1 - options.alpha));
    return Tensor(average);
  };
  Tensor variance = move(slot.state[0], g * g);
  if (options.centered) {
    const Tensor mean = move(slot.state.back(), g);
    variance = maximum(variance - mean * mean, 0.0);  // rounding may make it negative
  }
  Tensor direction = g / (sqrt(variance) + options.eps);
  if (options.momentum > 0) {
    direction = slot.state[1] * options.momentum + direction;
    slot.state[1].assign(direction);
  }
  p.assign(p - group(group_index).lr * direction);
}

Adagrad::Adagrad(const std::vector<Parameter>& parameters, const Options& options,
                 std::source_location loc)
    : Adagrad({{parameters, options}}, loc) {}

Adagrad::Adagrad(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("Adagrad") {
  for (const auto& [parameters, options] : groups) {
    expect_options("Adagrad", {{"lr_decay", options.lr_decay},
                               {"weight_decay", options.weight_decay},
                               {"initial_accumulator_value", options.initial_accumulator_value},
                               {"eps", options.eps}});
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, options.maximize, {});
    for (Slot& slot : group.slots) {
      slot.state.push_back(make_opt_state(slot.parameter.name() + ".sum",
                                          options.initial_accumulator_value,
                                          slot.parameter.shape()));
    }
    if (options.lr_decay > 0) add_group_state(group, "step");
  }
  expect_parameters(loc);
}

std::vector<Tensor> Adagrad::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  if (group.state.empty()) return {group.lr};
  Parameter step = group.state[0];
  const Tensor factor = 1.0 / (step * options_[group_index].lr_decay + 1.0);
  step.assign(step + 1.0);
  return {group.lr * cast(factor, DType::f32)};
}

void Adagrad::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared shared) {
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  const Tensor g = decayed(grad, p, options.weight_decay);
  const Tensor sum_of_squares = slot.state[0] + g * g;
  slot.state[0].assign(sum_of_squares);
  p.assign(p - shared[0] * (g / (sqrt(sum_of_squares) + options.eps)));
}

Adafactor::Adafactor(const std::vector<Parameter>& parameters, const Options& options,
                     std::source_location loc)
    : Adafactor({{parameters, options}}, loc) {}

Adafactor::Adafactor(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("Adafactor") {
  for (const auto& [parameters, options] : groups) {
    expect_options("Adafactor", {{"eps1", options.eps1.value_or(0)},
                                 {"eps2", options.eps2},
                                 {"weight_decay", options.weight_decay}});
    if (!(options.beta2_decay <= 0) || !(options.d >= 1)) {
      fail(Errc::invalid_argument,
           "Adafactor: beta2_decay = {} and d = {}: expected 0 or less, and 1 or more",
           options.beta2_decay, options.d);
    }
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, options.maximize, {});
    for (Slot& slot : group.slots) {
      const auto add = [&](const char* state, const Shape& shape) {
        slot.state.push_back(
            make_opt_state(fmt::format("{}.{}", slot.parameter.name(), state), 0, shape));
      };
      const Shape& shape = slot.parameter.shape();
      if (shape.size() < 2) {
        add("variance", shape);
        continue;
      }
      Shape rows = shape;
      Shape columns = shape;
      rows[shape.size() - 1] = 1;
      columns[shape.size() - 2] = 1;
      add("row_var", rows);
      add("col_var", columns);
    }
    if (!parameters.empty()) add_group_state(group, "step");
  }
  expect_parameters(loc);
}

std::vector<Tensor> Adafactor::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  const Options& options = options_[group_index];
  if (group.state.empty()) return {};
  Parameter step = group.state[0];
  step.assign(step + 1.0);
  return {cast(pow(step, options.beta2_decay), DType::f32),
          minimum(group.lr, cast(rsqrt(step), DType::f32)), 1.0 - group.lr * options.weight_decay};
}

void Adafactor::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared shared) {
  const Tensor& share = shared[0];  // weight of the new squares in the averages
  const Tensor& rate = shared[1];
  const Tensor& decay = shared[2];
  const Options& options = options_[group_index];
  const double eps1 = options.eps1.value_or(0x1p-23);
  Parameter& p = slot.parameter;
  const auto root_mean_square = [](const Tensor& x) { return sqrt(mean(x * x)); };
  const auto move = [&](Parameter& average, const Tensor& value) {
    average.assign(average + (value - average) * share);
    return Tensor(average);
  };
  const Tensor squares = grad * grad;
  Tensor variance;
  if (slot.state.size() == 1) {
    variance = move(slot.state[0], squares);
  } else {
    const Tensor rows = move(slot.state[0], mean(squares, {-1}, true));
    const Tensor columns = move(slot.state[1], mean(squares, {-2}, true));
    variance = rows * columns / maximum(mean(rows, {-2}, true), eps1);
  }
  const Tensor scaled = rsqrt(maximum(variance, eps1 * eps1)) * grad;
  const Tensor size = maximum(root_mean_square(p), options.eps2) * rate;
  const Tensor excess = maximum(root_mean_square(scaled) / options.d, 1.0);
  const Tensor kept = options.weight_decay > 0 ? p * decay : p;
  p.assign(kept - scaled * (size / excess));
}

}  // namespace weft
