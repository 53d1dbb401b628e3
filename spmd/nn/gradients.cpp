#include <weft/optim/gradients.hpp>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {
namespace {

/// Returns the node of the first gradient whose loss is known; null if there is none. Refuses
/// gradients of different losses if one of the losses divides by a count, because the losses may
/// then have different weights.
const TensorNode* find_loss(Call& call, std::span<const Tensor> grads) {
  const TensorNode* first = nullptr;
  for (const Tensor& grad : grads) {
    if (!grad.defined() || grad.node()->gradient == nullptr) continue;
    const LossMean* own = grad.node()->gradient->mean.get();
    if (own == nullptr) continue;
    if (first == nullptr) first = grad.node().get();
    const LossMean* mean = first->gradient->mean.get();
    if (mean != own && (mean->sum != kNoId || own->sum != kNoId)) {
      call.refuse(
          "the gradients belong to two losses, which may have different weights: use a separate "
          "GradientAccumulation for each loss, or give the weight by add(grads, weight)");
    }
  }
  return first;
}

/// Returns the weight that the gradient gets when gradients of the same loss for other data are
/// added to it: the number or share of elements that count in the loss. An undefined tensor stands
/// for 1. Refuses a loss whose weight can't be determined.
Tensor weight_of(Call& call, const TensorNode& grad) {
  const LossMean& mean = *grad.gradient->mean;
  if (mean.sum == kNoId) {
    if (mean.divided_at.empty()) return {};
    call.refuse(
        "the loss contains a division by a count of its data at {}, but isn't only this quotient, "
        "so the weight of its gradients isn't known: write the loss as one quotient, sum / count, "
        "or give the weight by add(grads, weight)",
        mean.divided_at);
  }
  const bool is_here = call.trace().is_recorded(grad) && grad.trace == mean.trace;
  if (!is_here && !mean.kept_count.defined()) {
    call.refuse(
        "the loss of the gradients is divided by a count of its data, which was computed before "
        "the last sync or in a compiled function: call add() where the gradients are computed, or "
        "also return the count and pass it by add(grads, weight)");
  }
  const Tensor count = cast(is_here ? call.result(mean.count) : mean.kept_count, DType::f32);
  return mean.elements > 0 ? count * (1 / mean.elements) : count;
}

}  // namespace

Tensor clip_by_global_norm(std::span<Tensor> grads, double max_norm, std::source_location loc) {
  Call call("clip_by_global_norm", loc);
  if (!(max_norm > 0)) call.refuse("max_norm {} must be above 0", max_norm);
  Tensor squares;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const bool is_narrow = is_half(call.type(g).dtype);  // f16 can't represent 300 * 300
    const Tensor wide = is_narrow ? cast(g, DType::f32) : g;
    squares = squares.defined() ? squares + sum(wide * wide) : sum(wide * wide);
  }
  if (!squares.defined()) call.refuse("no gradients are given");
  const Tensor norm = sqrt(squares);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) {
    if (!g.defined()) continue;
    const DType dtype = g.type().dtype;
    g = in_place_of(g, g * (is_half(dtype) ? cast(scale, dtype) : scale));
  }
  return norm;
}

void clip_by_value(std::span<Tensor> grads, double max_value, std::source_location loc) {
  Call call("clip_by_value", loc);
  if (!(max_value > 0)) call.refuse("max_value {} must be above 0", max_value);
  for (Tensor& g : grads) {
    if (g.defined()) g = in_place_of(g, clamp(g, -max_value, max_value));
  }
}

GradientAccumulation::GradientAccumulation(const std::vector<Parameter>& parameters)
    : parameters_(parameters) {
  if (parameters.empty()) {
    fail(Errc::invalid_argument, "GradientAccumulation: the parameter list is empty");
  }
  for (const Parameter& parameter : parameters) {
    sums_.push_back(make_opt_state(parameter.name() + ".grad_sum", 0, parameter.shape()));
  }
  const std::string& first = parameters.front().name();
  count_ = make_opt_state(first + ".grad_count", 0, {});
  const auto size = static_cast<std::int64_t>(parameters.size());
  record_ = make_opt_state(first + ".grad_losses", 0, {2 + size}, DType::f64);
  losses_.uses.resize(parameters.size());
}

/// Returns the record of the losses added so far. The host has it in losses_, because programs
/// depend on it. It is read from the state record_ only if the state's value comes from a file or
/// from an interrupted training loop.
GradientAccumulation::Losses GradientAccumulation::losses_so_far(Call& call) const {
  const TensorNode& node = *record_.node();
  if (!node.may_be_kept() || call.trace().is_pending(node)) return losses_;
  const std::vector<double> given = record_.to_vector<double>(call.loc());
  return {.count = given[0], .elements = given[1], .uses = {given.begin() + 2, given.end()}};
}

void GradientAccumulation::add(std::span<const Tensor> grads, std::source_location loc) {
  Call call("GradientAccumulation::add", loc);
  const std::vector<Tensor> in_order = matched_gradients(call, grads, parameters_);
  const TensorNode* grad = find_loss(call, in_order);
  const double before = losses_so_far(call).elements;
  if (grad == nullptr) return add_all(call, in_order, {}, before);
  const double elements = grad->gradient->mean->elements;
  if (before > 0 && elements > 0 && elements != before) {
    call.refuse(
        "the loss is the mean over {} elements, but was the mean over {} in the previous add(): "
        "give the weight of each by add(grads, weight)",
        elements, before);
  }
  add_all(call, in_order, weight_of(call, *grad), elements);
}

void GradientAccumulation::add(std::span<const Tensor> grads, const Tensor& weight,
                               std::source_location loc) {
  Call call("GradientAccumulation::add", loc);
  if (call.type(weight).num_elements() != 1) {
    call.refuse("the weight is {}: expected one number", call.node(weight)->label());
  }
  add_all(call, matched_gradients(call, grads, parameters_),
          reshape(cast(weight, DType::f32), Shape{}), losses_so_far(call).elements);
}

void GradientAccumulation::add_all(Call& call, std::span<const Tensor> in_order,
                                   const Tensor& weight, double elements) {
  losses_ = losses_so_far(call);
  // The state is updated as record * kept + added, whose constants are equal in each call, so that
  // each add() of the same losses records the same program.
  std::vector<double> kept(2 + in_order.size(), 1);
  std::vector<double> added(2 + in_order.size(), 0);
  added[0] = 1;
  kept[1] = 0;
  added[1] = elements;
  // The gradients of a mean over no elements are NaN and have the weight 0. They are replaced by
  // zeros.
  const Tensor is_nothing = weight.defined() ? equal(weight, 0.0) : Tensor();
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const Tensor& grad = in_order[i];
    if (!grad.defined() || !is_used(grad)) continue;
    added[2 + i] = 1;
    losses_.uses[i] += 1;
    follow_sharding(sums_[i], parameters_[i]);
    sums_[i].assign(sums_[i] + (weight.defined() ? where(is_nothing, 0.0, grad * weight) : grad));
  }
  count_.assign(weight.defined() ? count_ + weight : count_ + 1.0);
  const auto constant = [&](const std::vector<double>& numbers) {
    return call.result(call->constant(std::as_bytes(std::span(numbers)), record_.type()));
  };
  record_.assign(record_ * constant(kept) + constant(added));
  losses_.count += 1;
  losses_.elements = elements;
}

std::vector<Tensor> GradientAccumulation::take(std::source_location loc) {
  Call call("GradientAccumulation::take", loc);
  const TensorNode& count = *count_.node();
  const bool has_added = call.trace().is_pending(count) || count.kept.has_value() ||
                         !is_first_value(binding_of(count));
  if (!has_added) call.refuse("nothing was added: call add() with the gradients first");
  const Losses losses = losses_so_far(call);
  const Tensor total = present(call, count_);
  const Tensor share = where(equal(total, 0.0), 0.0, 1.0 / total);
  std::vector<Tensor> means;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (!parameters_[i].requires_grad()) {
      means.emplace_back();
      continue;
    }
    means.push_back(sums_[i] * share);
    const bool is_used = losses.count == 0 || losses.uses[i] > 0;
    means.back().node()->gradient = std::make_shared<const GradientOf>(
        GradientOf{.parameter = parameters_[i].node(), .is_used = is_used});
    sums_[i].assign(full(sums_[i].shape(), 0));
  }
  count_.assign(full({}, 0));
  record_.assign(full(record_.shape(), 0, DType::f64));
  losses_ = {.uses = std::vector<double>(parameters_.size())};
  return means;
}

std::vector<Parameter> GradientAccumulation::state() const {
  std::vector<Parameter> all = sums_;
  all.push_back(count_);
  all.push_back(record_);
  return all;
}

}  // namespace weft
