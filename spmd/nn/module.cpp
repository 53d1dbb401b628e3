#include <weft/nn/module.hpp>

#include <algorithm>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

Parameter claimed(const NodePtr& node) {
  Trace::claim_kept(*node);
  return Parameter(node);
}

Parameter of_elements(InputKind kind, std::string name, std::span<const float> elements,
                      const Shape& shape) {
  const TensorType type{DType::f32, shape};
  if (static_cast<std::int64_t>(elements.size()) != type.num_elements()) {
    fail(Errc::invalid_argument, "{} '{}': {} elements are given for {}, which has {}",
         kind == InputKind::param ? "parameter" : "buffer", name, elements.size(), type.to_string(),
         type.num_elements());
  }
  return claimed(host_node(type, kind, std::move(name), std::as_bytes(elements)));
}

Parameter of_value(InputKind kind, std::string name, double value, const TensorType& type) {
  return claimed(source_node(type, kind, std::move(name), constant_values(type, value)));
}

bool is_among(const std::vector<Parameter>& all, const Parameter& one) {
  return std::ranges::any_of(all, [&](const Parameter& p) { return p.node() == one.node(); });
}

}  // namespace

Parameter make_parameter(std::string name, std::span<const float> elements, const Shape& shape) {
  return of_elements(InputKind::param, std::move(name), elements, shape);
}

Parameter make_parameter(std::string name, double value, const Shape& shape, DType dtype) {
  return of_value(InputKind::param, std::move(name), value, {dtype, shape});
}

Parameter make_opt_state(std::string name, double value, const Shape& shape, DType dtype) {
  return of_value(InputKind::opt_state, std::move(name), value, {dtype, shape});
}

Parameter make_buffer(std::string name, double value, const Shape& shape, DType dtype) {
  return of_value(InputKind::buffer, std::move(name), value, {dtype, shape});
}

Parameter make_buffer(std::string name, std::span<const float> elements, const Shape& shape) {
  return of_elements(InputKind::buffer, std::move(name), elements, shape);
}

Module::Module(Module& parent, std::string name) : parent_(&parent), name_(std::move(name)) {
  parent.expect_free(name_);
  parent.children_.push_back(this);
}

std::vector<Module*> Module::modules() {
  std::vector<Module*> all{this};
  for (Module* child : children_) {
    const std::vector<Module*> below = child->modules();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

Module::~Module() {
  if (parent_ != nullptr) std::erase(parent_->children_, this);
  for (Module* child : children_) child->parent_ = nullptr;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> all;
  append(all, &Module::parameters_);
  return all;
}

std::vector<Parameter> Module::buffers() const {
  std::vector<Parameter> all;
  append(all, &Module::buffers_);
  return all;
}

void Module::append(std::vector<Parameter>& all, std::vector<Parameter> Module::*own) const {
  for (const Parameter& parameter : this->*own) {
    if (!is_among(all, parameter)) all.push_back(parameter);
  }
  for (const Module* child : children_) child->append(all, own);
}

void Module::requires_grad(bool on) {
  for (Parameter& parameter : parameters()) parameter.requires_grad(on);
}

void Module::tie(Parameter& own, const Parameter& other) {
  const auto place =
      std::ranges::find_if(parameters_, [&](const Parameter& p) { return p.node() == own.node(); });
  if (!own.defined() || place == parameters_.end()) {
    fail(Errc::invalid_argument,
         "Module '{}': {} isn't a direct parameter of this module, so it can't be tied here",
         path(), own.defined() ? own.node()->label() : "an empty tensor");
  }
  if (!other.defined() || own.type() != other.type()) {
    fail(Errc::invalid_argument,
         "Module '{}': {} can't be tied to {}: expected a tensor of its type", path(),
         own.node()->label(), other.defined() ? other.node()->label() : "an empty tensor");
  }
  if (own.node() == other.node()) return;
  TensorNode& kept = *other.node();
  // A checkpoint or a file may have the value under the name of either tensor.
  if (!kept.kept.has_value()) kept.kept = own.node()->kept;
  kept.aliases.push_back(own.name());
  const auto& more = own.node()->aliases;
  kept.aliases.insert(kept.aliases.end(), more.begin(), more.end());
  *place = other;
  own = other;
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

Parameter Module::add_parameter(std::string_view name, double value, const Shape& shape) {
  expect_free(name);
  return parameters_.emplace_back(make_parameter(path(name), value, shape));
}

Parameter Module::add_buffer(std::string_view name, double value, const Shape& shape, DType dtype) {
  expect_free(name);
  return buffers_.emplace_back(make_buffer(path(name), value, shape, dtype));
}

Parameter Module::add_buffer(std::string_view name, std::span<const float> elements,
                             const Shape& shape) {
  expect_free(name);
  return buffers_.emplace_back(make_buffer(path(name), elements, shape));
}

std::string Module::path(std::string_view name) const {
  const std::string own = path();
  return own.empty() ? std::string(name) : fmt::format("{}.{}", own, name);
}

void Module::expect_free(std::string_view name) const {
  const std::string full = path(name);
  if (name.empty()) fail(Errc::invalid_argument, "Module: a part of '{}' has no name", full);
  const auto is_taken = [&](const Parameter& own) { return own.name() == full; };
  const auto is_child = [&](const Module* child) { return child->name_ == name; };
  if (std::ranges::any_of(parameters_, is_taken) || std::ranges::any_of(buffers_, is_taken) ||
      std::ranges::any_of(children_, is_child)) {
    fail(Errc::invalid_argument, "Module: the name '{}' is taken; give each part its own", full);
  }
}

}  // namespace weft
