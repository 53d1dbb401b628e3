#include <weft/module.hpp>

#include <algorithm>

#include "spmd/program/element.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

Parameter made(NodePtr node) {
  Trace::claim_kept(*node);
  return Parameter(std::move(node));
}

}  // namespace

const std::string& Parameter::name() const { return node_of(*this)->name; }

void Parameter::assign(const Tensor& value, std::source_location loc) {
  Call call("assign", loc);
  const NodePtr own = call.node(*this);
  if (call.type(value) != own->type) {
    call.refuse("the value {} isn't of the type of {}", call.node(value)->label(), own->label());
  }
  const ValueId next = call.value(value);
  call.value(*this);  // makes it an input, for the next value to replace
  call.trace().assign(*own, next);
}

Parameter make_parameter(std::string name, std::span<const float> elements, const Shape& shape) {
  const TensorType type{DType::f32, shape};
  if (static_cast<std::int64_t>(elements.size()) != type.num_elements()) {
    fail(Errc::invalid_argument, "parameter '{}': {} elements are given for {}, which has {}", name,
         elements.size(), type.to_string(), type.num_elements());
  }
  return made(host_node(type, InputKind::param, std::move(name), std::as_bytes(elements)));
}

Parameter make_opt_state(std::string name, double value, const Shape& shape, DType dtype) {
  const TensorType type{dtype, shape};
  std::vector<std::byte> elements(static_cast<std::size_t>(type.bytes()));
  for (std::int64_t at = 0; at < type.bytes(); at += byte_size(dtype)) {
    store_element(dtype, value, elements.data() + at);
  }
  return made(host_node(type, InputKind::opt_state, std::move(name), elements));
}

std::vector<Tensor> grad(const Tensor& loss, std::span<const Parameter> wrt,
                         std::source_location loc) {
  return grad(loss, std::span<const Tensor>(std::vector<Tensor>(wrt.begin(), wrt.end())), loc);
}

Module::Module(Module& parent, std::string name) : parent_(&parent), name_(std::move(name)) {
  parent.expect_free(name_);
  parent.children_.push_back(this);
}

Module::~Module() {
  if (parent_ != nullptr) std::erase(parent_->children_, this);
  for (Module* child : children_) child->parent_ = nullptr;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> all = parameters_;
  for (const Module* child : children_) {
    const std::vector<Parameter> theirs = child->parameters();
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

void Module::train(bool training) {
  training_ = training;
  for (Module* child : children_) child->train(training);
}

Parameter Module::add_parameter(std::string_view name, std::span<const float> elements,
                                const Shape& shape) {
  expect_free(name);
  return parameters_.emplace_back(make_parameter(path(name), elements, shape));
}

std::string Module::path(std::string_view name) const {
  const std::string own = path();
  return own.empty() ? std::string(name) : fmt::format("{}.{}", own, name);
}

void Module::expect_free(std::string_view name) const {
  const std::string full = path(name);
  if (name.empty()) fail(Errc::invalid_argument, "Module: a part of '{}' has no name", full);
  const bool taken =
      std::any_of(parameters_.begin(), parameters_.end(),
                  [&](const Parameter& parameter) { return parameter.name() == full; }) ||
      std::any_of(children_.begin(), children_.end(),
                  [&](const Module* child) { return child->name_ == name; });
  if (taken) {
    fail(Errc::invalid_argument, "Module: the name '{}' is taken; give each part its own", full);
  }
}

}  // namespace weft
