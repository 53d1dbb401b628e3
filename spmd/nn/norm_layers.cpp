#include <weft/nn/norm_layers.hpp>

#include <utility>
#include <vector>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Returns the unbiased variance of `count` elements, given the biased one.
Tensor unbiased(const Tensor& variance, std::int64_t count) {
  return variance * (static_cast<double>(count) / static_cast<double>(count - 1));
}

}  // namespace

ChannelNorm::ChannelNorm(Module& parent, std::string name, const Form& form)
    : Module(parent, std::move(name)), form_(form) {
  const std::int64_t size = form.num_features;
  if (size < 1) {
    fail(Errc::invalid_argument, "{} '{}': num_features = {}: expected 1 or more", form.layer,
         path(), size);
  }
  if (form.momentum && !(*form.momentum >= 0 && *form.momentum <= 1)) {
    fail(Errc::invalid_argument, "{} '{}': momentum = {}: expected 0 to 1", form.layer, path(),
         *form.momentum);
  }
  if (form.affine) {
    weight = add_parameter("weight", 1, {size});
    bias = add_parameter("bias", 0, {size});
  }
  if (form.track_running_stats) {
    running_mean = add_buffer("running_mean", 0, {size});
    running_var = add_buffer("running_var", 1, {size});
    num_batches_tracked = add_buffer("num_batches_tracked", 0, {}, DType::i64);
  }
}

void ChannelNorm::expect_input(const Tensor& x, const std::source_location& loc) const {
  const Call call(form_.layer, loc);
  const Shape& shape = call.type(x).shape;
  if (shape.size() >= form_.dims_min && shape.size() <= form_.dims_max &&
      shape[1] == form_.num_features) {
    return;
  }
  call.refuse("'{}' expects {} dims, [N,C,...] with C = {}, but got {}", path(),
              form_.dims_min == form_.dims_max
                  ? std::to_string(form_.dims_min)
                  : fmt::format("{} or {}", form_.dims_min, form_.dims_max),
              form_.num_features, call.node(x)->label());
}

void ChannelNorm::expect_count(const Tensor& x, std::int64_t count,
                               const std::source_location& loc) const {
  const Call call(form_.layer, loc);
  if (!is_training() || count >= 2) return;
  call.refuse("'{}' can't train on {}, which has {} element for each channel; expected 2 or more",
              path(), call.node(x)->label(), count);
}

void ChannelNorm::track(const BatchStatistics& unbiased_batch, const Tensor& momentum,
                        const std::source_location& loc) const {
  const auto move = [&](Parameter running, const Tensor& batch) {
    const Tensor step = cast(Operand(batch, loc), DType::f32) - running;
    running.assign(running + step * momentum, loc);
  };
  move(running_mean, unbiased_batch.mean);
  move(running_var, unbiased_batch.variance);
}

Tensor BatchNorm::operator()(const Tensor& x, std::source_location loc) const {
  expect_input(x, loc);
  const Call call(form_.layer, loc);
  if (!is_training() && form_.track_running_stats) {
    return batch_norm(Operand(x, loc), {running_mean, running_var}, weight, bias, form_.eps);
  }
  const std::int64_t count = x.num_elements() / form_.num_features;
  expect_count(x, count, loc);
  const BatchStatistics batch = batch_statistics(Operand(x, loc));
  if (is_training() && form_.track_running_stats) {
    const Tensor tracked = Operand(num_batches_tracked, loc) + 1.0;
    const Tensor momentum = form_.momentum ? full({}, *form_.momentum, DType::f32, loc)
                                           : Operand(1.0, loc) / cast(tracked, DType::f32);
    track({batch.mean, unbiased(batch.variance, count)}, momentum, loc);
    Parameter(num_batches_tracked).assign(tracked, loc);
  }
  return batch_norm(Operand(x, loc), batch, weight, bias, form_.eps);
}

Tensor InstanceNorm::operator()(const Tensor& x, std::source_location loc) const {
  expect_input(x, loc);
  const Call call(form_.layer, loc);
  if (!is_training() && form_.track_running_stats) {
    return batch_norm(Operand(x, loc), {running_mean, running_var}, weight, bias, form_.eps);
  }
  std::int64_t count = 1;
  for (int dim = 2; dim < x.shape().size(); ++dim) count *= x.shape()[dim];
  expect_count(x, count, loc);
  if (is_training() && form_.track_running_stats) {
    std::vector<int> places;
    for (int dim = 2; dim < x.shape().size(); ++dim) places.push_back(dim);
    track({mean(mean(Operand(x, loc), places), {0}), mean(var(Operand(x, loc), places), {0})},
          full({}, *form_.momentum, DType::f32, loc), loc);
  }
  return instance_norm(Operand(x, loc), weight, bias, form_.eps);
}

BatchNorm1d::BatchNorm1d(Module& parent, std::string name, const BatchNormOptions& o)
    : BatchNorm(parent, std::move(name),
                {o.num_features, o.eps, o.momentum, o.affine, o.track_running_stats, "BatchNorm1d",
                 2, 3}) {}

BatchNorm2d::BatchNorm2d(Module& parent, std::string name, const BatchNormOptions& o)
    : BatchNorm(parent, std::move(name),
                {o.num_features, o.eps, o.momentum, o.affine, o.track_running_stats, "BatchNorm2d",
                 4, 4}) {}

InstanceNorm1d::InstanceNorm1d(Module& parent, std::string name, const InstanceNormOptions& o)
    : InstanceNorm(parent, std::move(name),
                   {o.num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
                    "InstanceNorm1d", 3, 3}) {}

InstanceNorm2d::InstanceNorm2d(Module& parent, std::string name, const InstanceNormOptions& o)
    : InstanceNorm(parent, std::move(name),
                   {o.num_features, o.eps, o.momentum, o.affine, o.track_running_stats,
                    "InstanceNorm2d", 4, 4}) {}

GroupNorm::GroupNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), num_groups_(options.num_groups), eps_(options.eps) {
  const std::int64_t size = options.num_channels;
  if (size < 1) {
    fail(Errc::invalid_argument, "GroupNorm '{}': num_channels = {}: expected 1 or more", path(),
         size);
  }
  if (num_groups_ < 1 || size % num_groups_ != 0) {
    fail(Errc::invalid_argument,
         "GroupNorm '{}': num_groups = {}: expected a divisor of num_channels {}", path(),
         num_groups_, size);
  }
  if (!options.affine) return;
  weight = add_parameter("weight", 1, {size});
  bias = add_parameter("bias", 0, {size});
}

Tensor GroupNorm::operator()(const Tensor& x, std::source_location loc) const {
  return group_norm(Operand(x, loc), num_groups_, weight, bias, eps_);
}

}  // namespace weft
