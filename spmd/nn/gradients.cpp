#include <weft/gradients.hpp>

#include <weft/ops.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {

Tensor clip_by_global_norm(std::span<Tensor> grads, double max_norm, std::source_location loc) {
  Call call("clip_by_global_norm", loc);
  if (!(max_norm > 0)) call.refuse("max_norm {} must be above 0", max_norm);
  Tensor squares;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const bool is_narrow = is_half(call.type(g).dtype);  // the square of 300 is none of f16
    const Tensor wide = is_narrow ? cast(g, DType::f32) : g;
    squares = squares.defined() ? squares + sum(wide * wide) : sum(wide * wide);
  }
  if (!squares.defined()) call.refuse("no gradients are given");
  const Tensor norm = sqrt(squares);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) {
    if (!g.defined()) continue;
    const DType dtype = g.type().dtype;
    g = g * (is_half(dtype) ? cast(scale, dtype) : scale);
  }
  return norm;
}

void clip_by_value(std::span<Tensor> grads, double max_value, std::source_location loc) {
  Call call("clip_by_value", loc);
  if (!(max_value > 0)) call.refuse("max_value {} must be above 0", max_value);
  for (Tensor& g : grads) {
    if (g.defined()) g = clamp(g, -max_value, max_value);
  }
}

GradientAccumulation::GradientAccumulation(const std::vector<Parameter>& parameters)
    : parameters_(parameters) {
  if (parameters.empty()) {
    fail(Errc::invalid_argument, "GradientAccumulation: it got an empty parameter list");
  }
  for (const Parameter& parameter : parameters) {
    sums_.push_back(make_opt_state(parameter.name() + ".grad_sum", 0, parameter.shape()));
  }
  count_ = make_opt_state(parameters.front().name() + ".grad_count", 0, {});
}

void GradientAccumulation::add(std::span<const Tensor> grads, std::source_location loc) {
  Call call("GradientAccumulation::add", loc);
  expect_gradients(call, grads, parameters_);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!parameters_[i].requires_grad()) continue;
    follow_sharding(sums_[i], parameters_[i]);
    sums_[i].assign(sums_[i] + grads[i]);
  }
  count_.assign(count_ + 1.0);
}

std::vector<Tensor> GradientAccumulation::take(std::source_location loc) {
  Call call("GradientAccumulation::take", loc);
  const Tensor share = 1.0 / present(call, count_);
  std::vector<Tensor> means;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (!parameters_[i].requires_grad()) {
      means.emplace_back();
      continue;
    }
    means.push_back(sums_[i] * share);
    sums_[i].assign(full(sums_[i].shape(), 0));
  }
  count_.assign(full({}, 0));
  return means;
}

std::vector<Parameter> GradientAccumulation::state() const {
  std::vector<Parameter> all = sums_;
  all.push_back(count_);
  return all;
}

}  // namespace weft
