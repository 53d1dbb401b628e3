#include <weft/optim.hpp>

#include <algorithm>
#include <array>
#include <limits>

#include <weft/ops.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_between(std::string_view option, double value, double limit) {
  if (!(value >= 0 && value < limit)) {
    fail(Errc::invalid_argument, "{} = {} must be at least 0 and below {}", option, value, limit);
  }
}

void expect_gradients(Call& call, std::span<const Tensor> grads,
                      std::span<const Parameter> parameters) {
  if (grads.size() != parameters.size()) {
    call.refuse("{} gradients are given for {} parameters", grads.size(), parameters.size());
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    if (call.type(grads[i]) != parameters[i].type()) {
      call.refuse("grads[{}] is {}, but its parameter is {}", i, call.node(grads[i])->label(),
                  parameters[i].node()->label());
    }
  }
}

/// State that nobody marked, and that isn't on the chips yet, is asked for as its parameter is or
/// lies.
void follow_sharding(const Parameter& state, const Parameter& parameter) {
  TensorNode& node = *state.node();
  if (node.marked || !node.is_off_chips()) return;
  node.marked = parameter.node()->input_sharding();
}

}  // namespace

Optimizer::Group& Optimizer::add_group(const std::vector<Parameter>& parameters, double lr,
                                       std::span<const char* const> states) {
  expect_between(fmt::format("{}: lr", name_), lr, kInfinity);
  Group group{.lr = Scalar(lr), .slots = {}, .state = {}};
  for (const Parameter& parameter : parameters) {
    Slot& slot = group.slots.emplace_back(Slot{parameter, {}});
    for (const char* state : states) {
      slot.state.push_back(
          make_opt_state(fmt::format("{}.{}", parameter.name(), state), 0, parameter.shape()));
    }
  }
  groups_.push_back(std::move(group));
  return groups_.back();
}

void Optimizer::expect_parameters(const std::source_location& loc) const {
  const auto has_parameters = [](const Group& group) { return !group.slots.empty(); };
  if (std::ranges::any_of(groups_, has_parameters)) return;
  fail(Errc::invalid_argument,
       "{}: it got an empty parameter list; give it what is to be trained, as module.parameters() "
       "of a module whose layers are made with *this (at {})",
       name_, file_line(loc));
}

void Optimizer::step(std::span<const Tensor> grads, std::source_location loc) {
  Call call(step_name_, loc);
  const std::vector<Parameter> all = parameters();
  expect_gradients(call, grads, all);
  std::size_t next = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::vector<Tensor> shared = begin(i);
    for (Slot& slot : groups_[i].slots) {
      const Tensor& grad = grads[next++];
      if (!slot.parameter.requires_grad()) continue;
      for (const Parameter& state : slot.state) follow_sharding(state, slot.parameter);
      update(i, slot, grad, shared);
    }
  }
}

std::vector<Optimizer::Slot> Optimizer::slots() const {
  std::vector<Slot> all;
  for (const Group& group : groups_) {
    all.insert(all.end(), group.slots.begin(), group.slots.end());
  }
  return all;
}

std::vector<Parameter> Optimizer::parameters() const {
  std::vector<Parameter> all;
  for (const Group& group : groups_) {
    for (const Slot& slot : group.slots) all.push_back(slot.parameter);
  }
  return all;
}

std::vector<Parameter> Optimizer::state() const {
  std::vector<Parameter> all;
  for (const Group& group : groups_) {
    for (const Slot& slot : group.slots) {
      all.insert(all.end(), slot.state.begin(), slot.state.end());
    }
  }
  for (const Group& group : groups_) {
    all.insert(all.end(), group.state.begin(), group.state.end());
  }
  return all;
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < groups_.size(); ++group) set_lr(lr, group);
}

void Optimizer::set_lr(double lr, std::size_t group) {
  expect_between(fmt::format("{}: lr", name_), lr, kInfinity);
  groups_.at(group).lr.set(lr);
}

SGD::SGD(const std::vector<Parameter>& parameters, const Options& options, std::source_location loc)
    : SGD({{parameters, options}}, loc) {}

SGD::SGD(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("SGD") {
  static constexpr std::array kStates{"momentum_buffer"};
  for (const auto& [parameters, options] : groups) {
    expect_between("SGD: momentum", options.momentum, kInfinity);
    expect_between("SGD: weight_decay", options.weight_decay, kInfinity);
    if (options.nesterov && options.momentum == 0) {
      fail(Errc::invalid_argument, "SGD: nesterov needs a momentum above 0");
    }
    options_.push_back(options);
    add_group(parameters, options.lr, std::span(kStates).first(options.momentum > 0 ? 1 : 0));
  }
  expect_parameters(loc);
}

void SGD::update(std::size_t group_index, Slot& slot, const Tensor& grad,
                 std::span<const Tensor> /*shared*/) {
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  Tensor direction = grad;
  if (options.weight_decay > 0) direction = direction + p * options.weight_decay;
  if (options.momentum > 0) {
    const Tensor next = slot.state[0] * options.momentum + direction;
    direction = options.nesterov ? direction + next * options.momentum : next;
    slot.state[0].assign(next);
  }
  p.assign(p - group(group_index).lr * direction);
}

Adam::Adam(const std::vector<Parameter>& parameters, const Options& options,
           std::source_location loc)
    : Adam({{parameters, options}}, loc) {}

Adam::Adam(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Adam("Adam", false, groups, loc) {}

Adam::Adam(std::string name, bool decoupled, const std::vector<ParameterGroup<Options>>& groups,
           const std::source_location& loc)
    : Optimizer(name), decoupled_(decoupled) {
  static constexpr std::array kStates{"exp_avg", "exp_avg_sq"};
  for (const auto& [parameters, options] : groups) {
    expect_between(fmt::format("{}: beta1", name), options.beta1, 1);
    expect_between(fmt::format("{}: beta2", name), options.beta2, 1);
    expect_between(fmt::format("{}: eps", name), options.eps, kInfinity);
    expect_between(fmt::format("{}: weight_decay", name), options.weight_decay, kInfinity);
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, kStates);
    if (parameters.empty()) continue;
    // f64: 1 - beta2^step is lost to rounding in f32 when the step is large.
    for (const char* state : {"bias_correction1", "bias_correction2"}) {
      group.state.push_back(make_opt_state(fmt::format("{}.{}", parameters.front().name(), state),
                                           0, {}, DType::f64));
    }
  }
  expect_parameters(loc);
}

std::vector<Tensor> Adam::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  const Options& options = options_[group_index];
  if (group.state.empty()) return {};
  const auto advance = [](Parameter average, double beta) {
    average.assign(average * beta + (1 - beta));
    return average;
  };
  const Tensor correction1 = advance(group.state[0], options.beta1);
  const Tensor correction2 = advance(group.state[1], options.beta2);
  return {group.lr / cast(correction1, DType::f32), cast(sqrt(correction2), DType::f32),
          1.0 - group.lr * options.weight_decay};
}

void Adam::update(std::size_t group_index, Slot& slot, const Tensor& grad,
                  std::span<const Tensor> shared) {
  const Tensor& step_size = shared[0];
  const Tensor& correction = shared[1];
  const Tensor& decay = shared[2];
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  const bool l2 = !decoupled_ && options.weight_decay > 0;
  const Tensor g = l2 ? grad + p * options.weight_decay : grad;
  const Tensor m = slot.state[0] * options.beta1 + g * (1 - options.beta1);
  const Tensor v = slot.state[1] * options.beta2 + g * g * (1 - options.beta2);
  const Tensor kept = decoupled_ && options.weight_decay > 0 ? p * decay : p;
  p.assign(kept - step_size * (m / (sqrt(v) / correction + options.eps)));
  slot.state[0].assign(m);
  slot.state[1].assign(v);
}

namespace {

std::vector<ParameterGroup<Adam::Options>> as_adam(
    const std::vector<ParameterGroup<AdamW::Options>>& groups) {
  std::vector<ParameterGroup<Adam::Options>> result;
  for (const auto& [parameters, options] : groups) {
    const auto [lr, beta1, beta2, eps, weight_decay] = options;
    result.push_back({parameters, {lr, beta1, beta2, eps, weight_decay}});
  }
  return result;
}

}  // namespace

AdamW::AdamW(const std::vector<Parameter>& parameters, const Options& options,
             std::source_location loc)
    : AdamW({{parameters, options}}, loc) {}

AdamW::AdamW(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Adam("AdamW", true, as_adam(groups), loc) {}

Tensor clip_by_global_norm(std::span<Tensor> grads, double max_norm, std::source_location loc) {
  Call call("clip_by_global_norm", loc);
  if (!(max_norm > 0)) call.refuse("max_norm {} must be above 0", max_norm);
  Tensor squares;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    squares = squares.defined() ? squares + sum(g * g) : sum(g * g);
  }
  if (!squares.defined()) call.refuse("no gradients are given");
  const Tensor norm = sqrt(squares);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) {
    if (g.defined()) g = g * scale;
  }
  return norm;
}

}  // namespace weft
