#include <weft/nn/parameter.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {

const std::string& Parameter::name() const { return node_of(*this)->name; }

void Parameter::assign(const Tensor& value, std::source_location loc) {
  Call call("assign", loc);
  const NodePtr own = call.node(*this);
  if (own->is_exchanged) {
    call.refuse("{} is assigned in an AverageScope: assign it before or after the scope",
                own->label());
  }
  if (call.type(value) != own->type) {
    call.refuse("the value {} doesn't have the type of {}", call.node(value)->label(),
                own->label());
  }
  const ValueId next = call.value(value);
  call.value(*this);  // makes it an input that the next value replaces
  call.trace().assign(own, next);
}

void Parameter::requires_grad(bool on) { node_of(*this)->frozen = !on; }
bool Parameter::requires_grad() const { return !node_of(*this)->frozen; }

std::vector<Tensor> grad(const Tensor& loss, std::span<const Parameter> wrt,
                         std::source_location loc) {
  std::vector<Tensor> trained;
  for (const Parameter& parameter : wrt) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  std::vector<Tensor> grads = grad(loss, trained, loc);
  if (trained.size() == wrt.size()) return grads;
  std::vector<Tensor> all;
  auto next = grads.begin();
  for (const Parameter& parameter : wrt) {
    all.push_back(parameter.requires_grad() ? *next++ : Tensor());
  }
  return all;
}

}  // namespace weft
