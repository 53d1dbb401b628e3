#include <weft/spmd/tensor/module.hpp>

#include <algorithm>
#include <cmath>

#include <weft/spmd/program/philox.hpp>
#include <weft/spmd/tensor/call.hpp>
#include <weft/spmd/tensor/functional.hpp>
#include <weft/spmd/tensor/random.hpp>

namespace weft {
namespace {

/// Uniform in +-bound, by the thread's seed and the parameter's name.
std::vector<float> uniform_elements(std::string_view name, const Shape& shape, double bound) {
  const std::uint64_t stream = stream_of(name);
  std::vector<float> elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float unit = uniform(random_word(initial_seed(), stream, i));
    elements[i] = static_cast<float>(bound) * (2 * unit - 1);
  }
  return elements;
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
  return Parameter(host_node(type, InputKind::param, std::move(name), std::as_bytes(elements)));
}

Parameter make_opt_state(std::string name, double value, const Shape& shape) {
  const std::vector<float> elements(static_cast<std::size_t>(shape.num_elements()),
                                    static_cast<float>(value));
  return Parameter(host_node({DType::f32, shape}, InputKind::opt_state, std::move(name),
                             std::as_bytes(std::span(elements))));
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

Parameter Module::add_parameter(std::string_view name, std::span<const float> elements,
                                const Shape& shape) {
  expect_free(name);
  return parameters_.emplace_back(make_parameter(path(name), elements, shape));
}

std::string Module::path(std::string_view name) const {
  const std::string own = parent_ == nullptr ? name_ : parent_->path(name_);
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

Linear::Linear(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  const auto [in, out, has_bias] = options;
  if (in < 1 || out < 1) {
    fail(Errc::invalid_argument,
         "Linear '{}': in_features {} and out_features {} must be at least 1", path("weight"), in,
         out);
  }
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const auto add = [&](std::string_view parameter, const Shape& shape) {
    return add_parameter(parameter, uniform_elements(path(parameter), shape, bound), shape);
  };
  weight = add("weight", {out, in});
  if (has_bias) bias = add("bias", {out});
}

Tensor Linear::operator()(const Tensor& x, std::source_location loc) const {
  return linear(Operand(x, loc), weight, bias);
}

}  // namespace weft
