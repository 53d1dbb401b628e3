#include "spmd/nn/optimizer_parts.hpp"

#include <weft/ops/elementwise.hpp>

namespace weft {

void expect_options(std::string_view optimizer, std::initializer_list<NumberOption> options) {
  for (const auto& [name, value, limit] : options) {
    if (value >= 0 && value < limit) continue;
    fail(Errc::invalid_argument, "{}: {} = {} must be at least 0 and below {}", optimizer, name,
         value, limit);
  }
}

namespace {

constexpr std::size_t kNobody = ~std::size_t{0};

/// Returns the parameter to which the gradient belongs, or null if grad() didn't compute the
/// gradient.
std::shared_ptr<const TensorNode> owner_of(const Tensor& grad) {
  const auto& gradient = grad.node()->gradient;
  return gradient == nullptr ? nullptr : gradient->parameter.lock();
}

/// Returns for each parameter the index of its gradient in `grads`.
std::vector<std::size_t> match(Call& call, std::span<const Tensor> grads,
                               std::span<const Parameter> parameters) {
  std::vector<std::size_t> matched(parameters.size(), kNobody);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const auto owner = owner_of(grads[i]);
    if (owner == nullptr) continue;
    std::size_t place = kNobody;  // index in `parameters`, which may repeat a parameter
    const auto is_its = [&](std::size_t p) {
      return parameters[p].node() == owner && matched[p] == kNobody;
    };
    if (is_its(i)) {
      place = i;
    } else {
      for (std::size_t p = parameters.size(); p-- > 0;) {
        if (is_its(p)) place = p;
      }
    }
    if (place == kNobody) {
      call.refuse(
          "grads[{}] is the gradient of {}, which isn't a parameter here or has another gradient "
          "in the list: pass one gradient for each parameter (the parameter at this index is "
          "'{}'), or pass grads[{}] * 1.0, which belongs to no parameter, to use the gradient at "
          "this index",
          i, owner->label(), parameters[i].name(), i);
    }
    matched[place] = i;
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || owner_of(grads[i]) != nullptr) continue;
    if (matched[i] != kNobody) {
      call.refuse(
          "grads[{}] is a computed tensor and so belongs to the parameter at its index, '{}', but "
          "grads[{}] is the gradient of that parameter: pass the gradients in the order of the "
          "parameters",
          i, parameters[i].name(), matched[i]);
    }
    matched[i] = i;
  }
  return matched;
}

}  // namespace

std::vector<Tensor> matched_gradients(Call& call, std::span<const Tensor> grads,
                                      std::span<const Parameter> parameters) {
  if (grads.size() != parameters.size()) {
    call.refuse("{} gradients are given for {} parameters", grads.size(), parameters.size());
  }
  const std::vector<std::size_t> matched = match(call, grads, parameters);
  std::vector<Tensor> in_order(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    if (matched[i] == kNobody) {
      call.refuse(
          "{} has no gradient: the tensor given for it has no value, like the result of grad() for "
          "a frozen parameter",
          parameters[i].node()->label());
    }
    const Tensor& grad = grads[matched[i]];
    if (call.type(grad) != parameters[i].type()) {
      call.refuse("grads[{}] is {}, but its parameter is {}", matched[i], call.node(grad)->label(),
                  parameters[i].node()->label());
    }
    in_order[i] = grad;
  }
  return in_order;
}

Tensor in_place_of(const Tensor& grad, const Tensor& value) {
  value.node()->gradient = grad.node()->gradient;
  return value;
}

bool is_used(const Tensor& grad) {
  return grad.node()->gradient == nullptr || grad.node()->gradient->is_used;
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
    // The present layout doesn't tell what the user requested. The state gets the constraints of
    // the user's mark, or open dims if a plan chose the layout.
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
