#include "spmd/nn/optimizer_parts.hpp"

#include <weft/ops.hpp>

namespace weft {

void expect_options(std::string_view optimizer, std::initializer_list<NumberOption> options) {
  for (const auto& [name, value, limit] : options) {
    if (value >= 0 && value < limit) continue;
    fail(Errc::invalid_argument, "{}: {} = {} must be at least 0 and below {}", optimizer, name,
         value, limit);
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

Sharding sharding_of_reduced(Sharding sharding, const Shape& from, const Shape& to) {
  for (int dim = 0; dim < from.size(); ++dim) {
    if (to[dim] != from[dim]) sharding.dims[static_cast<std::size_t>(dim)] = {};
  }
  return sharding;
}

void follow_sharding(const Parameter& state, const Parameter& parameter) {
  TensorNode& node = *state.node();
  if (node.marked || !node.is_off_chips()) return;
  Sharding sharding = parameter.node()->input_sharding();
  if (!parameter.node()->is_off_chips()) {
    // What a plan has chosen for the parameter doesn't bind its state; what a user has marked does.
    const Sharding asked =
        parameter.node()->marked.value_or(Sharding::open(parameter.shape().size()));
    sharding.open_mask = asked.open_mask;
    sharding.replicated = asked.replicated;
  }
  node.marked = sharding_of_reduced(sharding, parameter.shape(), state.shape());
}

Tensor decayed(const Tensor& grad, const Parameter& parameter, double weight_decay) {
  return weight_decay > 0 ? grad + parameter * weight_decay : grad;
}

Tensor advance(Parameter average, double beta) {
  average.assign(average * beta + (1 - beta));
  return average;
}

Tensor present(Call& call, const Parameter& parameter) {
  return call.result(call.value(parameter));
}

}  // namespace weft
