#include <weft/optim/optimizer.hpp>

#include <algorithm>
#include <array>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {
Optimizer::Group& Optimizer::add_group(const std::vector<Parameter>& parameters, double lr,
                                       bool maximize, std::span<const char* const> states) {
  expect_options(name_, {{"lr", lr}});
  Group group{.lr = Scalar(lr), .slots = {}, .state = {}, .maximize = maximize};
  for (const Parameter& parameter : parameters) {
    Slot& slot = group.slots.emplace_back(Slot{parameter, {}});
    for (const char* state : states) {
      slot.state.push_back(
          make_opt_state(fmt::format("{}.{}", parameter.name(), state), 0, parameter.shape()));
    }
  }
  group.own_state.resize(group.slots.size());
  groups_.push_back(std::move(group));
  return groups_.back();
}

namespace {

/// Returns the name for parameter `own`'s separate copy of the group's state `shared`, a count of
/// steps. `first` is the first parameter of the group.
std::string own_name(const std::string& shared, const Parameter& first, const Parameter& own) {
  return fmt::format("{}.own_{}", own.name(), shared.substr(first.name().size() + 1));
}

}  // namespace

void Optimizer::add_group_state(Group& group, const char* name) {
  const Parameter& first = group.slots.front().parameter;
  // The counts are f64, because in f32 rounding would make 1 - beta2^step imprecise.
  const Parameter& shared = group.state.emplace_back(
      make_opt_state(fmt::format("{}.{}", first.name(), name), 0, {}, DType::f64));
  for (std::size_t i = 0; i < group.slots.size(); ++i) {
    const std::string own = own_name(shared.name(), first, group.slots[i].parameter);
    if (!is_kept(own)) continue;
    put_in_place(group.own_state[i].emplace_back(make_opt_state(own, 0, {}, DType::f64)), {});
  }
}

/// Gives the slot its own copy of the group's step counts. Called when a step of the group doesn't
/// update the slot, so that the counts of the group and of the slot differ from now on.
void Optimizer::separate(Group& group, std::size_t slot, const std::source_location& loc) {
  const Parameter& first = group.slots.front().parameter;
  for (const Parameter& shared : group.state) {
    Parameter& own = group.own_state[slot].emplace_back(
        make_opt_state(own_name(shared.name(), first, group.slots[slot].parameter),
                       shared.item(loc), {}, DType::f64));
    put_in_place(own, loc);
  }
}

void Optimizer::expect_parameters(const std::source_location& loc) const {
  const auto has_parameters = [](const Group& group) { return !group.slots.empty(); };
  if (std::ranges::any_of(groups_, has_parameters)) return;
  fail(Errc::invalid_argument,
       "{}: the parameter list is empty; pass the parameters to train, such as module.parameters() "
       "of a module whose layers are made with *this (at {})",
       name_, file_line(loc));
}

void Optimizer::step(std::span<const Tensor> grads, std::source_location loc) {
  Call call(step_name_, loc);
  const std::vector<Tensor> in_order = matched_gradients(call, grads, parameters());
  auto grad = in_order.begin();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    step_group(i, {grad, grad + std::ssize(groups_[i].slots)}, loc);
    grad += std::ssize(groups_[i].slots);
  }
}

void Optimizer::step_group(std::size_t i, std::span<const Tensor> grads,
                           const std::source_location& loc) {
  Group& group = groups_[i];
  const auto takes_part = [&](std::size_t slot) {
    return grads[slot].defined() && is_used(grads[slot]);
  };
  bool any = false;
  for (std::size_t s = 0; s < grads.size(); ++s) {
    any = any || (takes_part(s) && group.own_state[s].empty());
  }
  for (std::size_t s = 0; any && s < grads.size(); ++s) {
    if (!takes_part(s) && group.own_state[s].empty()) separate(group, s, loc);
  }
  const std::vector<Tensor> shared = any ? begin(i) : std::vector<Tensor>();
  for (std::size_t s = 0; s < grads.size(); ++s) {
    if (!takes_part(s)) continue;
    Slot& slot = group.slots[s];
    for (const Parameter& state : slot.state) follow_sharding(state, slot.parameter);
    const bool is_apart = !group.own_state[s].empty();
    if (is_apart) group.state.swap(group.own_state[s]);
    const std::vector<Tensor> own = is_apart ? begin(i) : std::vector<Tensor>();
    if (is_apart) group.state.swap(group.own_state[s]);
    update(i, slot, group.maximize ? -grads[s] : grads[s], is_apart ? own : shared);
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
    for (const auto& own : group.own_state) all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < groups_.size(); ++group) set_lr(lr, group);
}

void Optimizer::set_lr(double lr, std::size_t group) {
  expect_options(name_, {{"lr", lr}});
  groups_.at(group).lr.set(lr);
}

SGD::SGD(const std::vector<Parameter>& parameters, const Options& options, std::source_location loc)
    : SGD({{parameters, options}}, loc) {}

SGD::SGD(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Optimizer("SGD") {
  static constexpr std::array kStates{"momentum_buffer"};
  for (const auto& [parameters, options] : groups) {
    expect_options("SGD", {{"momentum", options.momentum},
                           {"dampening", options.dampening},
                           {"weight_decay", options.weight_decay}});
    if (options.nesterov && (options.momentum == 0 || options.dampening > 0)) {
      fail(Errc::invalid_argument, "SGD: nesterov needs a momentum above 0 and no dampening");
    }
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, options.maximize,
                             std::span(kStates).first(options.momentum > 0 ? 1 : 0));
    if (options.dampening > 0 && !parameters.empty()) add_group_state(group, "step");
  }
  expect_parameters(loc);
}

std::vector<Tensor> SGD::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  if (group.state.empty()) return {};
  Parameter step = group.state[0];
  // In the first step, the momentum is the gradient itself.
  const double kept = 1 - options_[group_index].dampening;
  const Tensor share = where(equal(step, 0.0), 1.0, full({}, kept));
  step.assign(step + 1.0);
  return {share};
}

void SGD::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared shared) {
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  Tensor direction = decayed(grad, p, options.weight_decay);
  if (options.momentum > 0) {
    const Tensor next =
        slot.state[0] * options.momentum + (shared.empty() ? direction : direction * shared[0]);
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
  static constexpr std::array kStates{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  for (const auto& [parameters, options] : groups) {
    expect_options(name, {{"beta1", options.beta1, 1},
                          {"beta2", options.beta2, 1},
                          {"eps", options.eps},
                          {"weight_decay", options.weight_decay}});
    options_.push_back(options);
    Group& group = add_group(parameters, options.lr, options.maximize,
                             std::span(kStates).first(options.amsgrad ? 3 : 2));
    if (parameters.empty()) continue;
    add_group_state(group, "bias_correction1");
    add_group_state(group, "bias_correction2");
  }
  expect_parameters(loc);
}

std::vector<Tensor> Adam::begin(std::size_t group_index) {
  const Group& group = this->group(group_index);
  const Options& options = options_[group_index];
  if (group.state.empty()) return {};
  const Tensor correction1 = advance(group.state[0], options.beta1);
  const Tensor correction2 = advance(group.state[1], options.beta2);
  return {group.lr / cast(correction1, DType::f32), cast(sqrt(correction2), DType::f32),
          1.0 - group.lr * options.weight_decay};
}

void Adam::update(std::size_t group_index, Slot& slot, const Tensor& grad, Shared shared) {
  const Tensor& step_size = shared[0];
  const Tensor& correction = shared[1];
  const Tensor& decay = shared[2];
  const Options& options = options_[group_index];
  Parameter& p = slot.parameter;
  const Tensor g = decayed(grad, p, decoupled_ ? 0 : options.weight_decay);
  const Tensor m = slot.state[0] * options.beta1 + g * (1 - options.beta1);
  const Tensor v = slot.state[1] * options.beta2 + g * g * (1 - options.beta2);
  const Tensor kept = decoupled_ && options.weight_decay > 0 ? p * decay : p;
  const Tensor square = options.amsgrad ? maximum(slot.state[2], v) : v;
  p.assign(kept - step_size * (m / (sqrt(square) / correction + options.eps)));
  slot.state[0].assign(m);
  slot.state[1].assign(v);
  if (options.amsgrad) slot.state[2].assign(square);
}

namespace {

std::vector<ParameterGroup<Adam::Options>> as_adam(
    const std::vector<ParameterGroup<AdamW::Options>>& groups) {
  std::vector<ParameterGroup<Adam::Options>> result;
  for (const auto& [parameters, options] : groups) {
    const auto [lr, beta1, beta2, eps, weight_decay, amsgrad, maximize] = options;
    result.push_back({parameters, {lr, beta1, beta2, eps, weight_decay, amsgrad, maximize}});
  }
  return result;
}

}  // namespace

AdamW::AdamW(const std::vector<Parameter>& parameters, const Options& options,
             std::source_location loc)
    : AdamW({{parameters, options}}, loc) {}

AdamW::AdamW(const std::vector<ParameterGroup<Options>>& groups, std::source_location loc)
    : Adam("AdamW", true, as_adam(groups), loc) {}

}  // namespace weft
