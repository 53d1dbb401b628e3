#include <weft/optim/large_scale.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <weft/nn/functional.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {

Lion::Lion(const std::vector<Parameter>& parameters, const Options& options,
           std::source_location loc)
    : Lion({{parameters, options}}, loc) {}

Lion::Lion(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("Lion") {
  static constexpr std::array kStates{"exp_avg"};
  for (const auto& [parameters, options] : groups) {
    expect_options("Lion", {{"beta1", options.beta1, 1},
                            {"beta2", options.beta2, 1},
                            {"weight_decay", options.weight_decay}});
    options_.push_back(options);
    add_group(parameters, options.lr, options.maximize, kStates);
  }
  expect_parameters(loc);
}

void Lion::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared /*shared*/) {
  const Options& options = options_[group_index];
  const Scalar& lr = group(group_index).lr;
  Parameter& p = slot.parameter;
  Parameter& average = slot.state[0];
  const Tensor direction = sign(average * options.beta1 + grad * (1 - options.beta1));
  const Tensor kept = options.weight_decay > 0 ? p * (1.0 - lr * options.weight_decay) : p;
  p.assign(kept - lr * direction);
  average.assign(average * options.beta2 + grad * (1 - options.beta2));
}

LAMB::LAMB(const std::vector<Parameter>& parameters, const Options& options,
           std::source_location loc)
    : LAMB({{parameters, options}}, loc) {}

LAMB::LAMB(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("LAMB") {
  static constexpr std::array kStates{"exp_avg", "exp_avg_sq"};
  for (const auto& [parameters, options] : groups) {
    expect_options("LAMB", {{"beta1", options.beta1, 1},
                            {"beta2", options.beta2, 1},
                            {"eps", options.eps},
                            {"weight_decay", options.weight_decay}});
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, options.maximize, kStates);
    if (parameters.empty()) continue;
    add_group_state(group, "bias_correction1");
    add_group_state(group, "bias_correction2");
  }
  expect_parameters(loc);
}

std::vector<Tensor> LAMB::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  const Options& options = options_[group_index];
  if (group.state.empty()) return {};
  const Tensor correction1 = advance(group.state[0], options.beta1);
  const Tensor correction2 = advance(group.state[1], options.beta2);
  return {cast(correction1, DType::f32), cast(correction2, DType::f32)};
}

void LAMB::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared shared) {
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  const Tensor m = slot.state[0] * options.beta1 + grad * (1 - options.beta1);
  const Tensor v = slot.state[1] * options.beta2 + grad * grad * (1 - options.beta2);
  slot.state[0].assign(m);
  slot.state[1].assign(v);
  const Tensor adam = (m / shared[0]) / (sqrt(v / shared[1]) + options.eps);
  const Tensor direction = decayed(adam, p, options.weight_decay);
  const Tensor size = norm(p);
  const Tensor length = norm(direction);
  const Tensor both = logical_and(greater(size, 0.0), greater(length, 0.0));
  const Tensor trust = where(both, size / where(both, length, 1.0), 1.0);
  p.assign(p - direction * (group(group_index).lr * trust));
}

Muon::Muon(const std::vector<Parameter>& parameters, const Options& options,
           std::source_location loc)
    : Muon({{parameters, options}}, loc) {}

Muon::Muon(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("Muon") {
  static constexpr std::array kStates{"momentum_buffer"};
  for (const auto& [parameters, options] : groups) {
    expect_options("Muon", {{"momentum", options.momentum, 1},
                            {"eps", options.eps},
                            {"weight_decay", options.weight_decay},
                            {"ns_steps", static_cast<double>(options.ns_steps), 100}});
    for (const Parameter& parameter : parameters) {
      if (parameter.shape().size() == 2) continue;
      fail(Errc::invalid_argument,
           "Muon: {} isn't a matrix; pass such parameters to another optimizer, like AdamW (at {})",
           parameter.node()->label(), file_line(loc));
    }
    options_.push_back(options);
    add_group(parameters, options.lr, options.maximize, kStates);
  }
  expect_parameters(loc);
}

namespace {

/// Returns approximately U V' of the matrix's singular value decomposition U S V'. The iteration
/// moves each singular value close to 1.
Tensor orthogonalized(const Tensor& matrix, const Muon::Options& options) {
  const bool is_tall = matrix.shape()[0] > matrix.shape()[1];
  const auto [a, b, c] = options.ns_coefficients;
  Tensor x = is_tall ? transpose(matrix, 0, 1) : matrix;
  x = x / maximum(norm(x), options.eps);
  for (int step = 0; step < options.ns_steps; ++step) {
    const Tensor gram = matmul(x, transpose(x, 0, 1));
    x = x * a + matmul(gram * b + matmul(gram, gram) * c, x);
  }
  return is_tall ? transpose(x, 0, 1) : x;
}

}  // namespace

void Muon::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared /*shared*/) {
  const Options& options = options_[group_index];
  const Scalar& lr = group(group_index).lr;
  Parameter& p = slot.parameter;
  const Tensor average = slot.state[0] * options.momentum + grad * (1 - options.momentum);
  slot.state[0].assign(average);
  const Tensor direction =
      options.nesterov ? average * options.momentum + grad * (1 - options.momentum) : average;
  const auto rows = static_cast<double>(p.shape()[0]);
  const auto columns = static_cast<double>(p.shape()[1]);
  const double factor = options.adjust_lr == Adjust::original
                            ? std::sqrt(std::max(1.0, rows / columns))
                            : 0.2 * std::sqrt(std::max(rows, columns));
  const Tensor kept = options.weight_decay > 0 ? p * (1.0 - lr * options.weight_decay) : p;
  p.assign(kept - orthogonalized(direction, options) * (lr * factor));
}

}  // namespace weft
