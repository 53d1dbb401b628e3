#include <algorithm>
#include <string_view>

#include <weft/nn/functional.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Normalizes x over its last dims, as many as `weight` has. Refuses a weight if its shape isn't
/// that of these dims.
Tensor normalized(Call& call, const Operand& x, const Tensor& weight,
                  const Normalization& normalization) {
  const TensorType type = call.type(x);
  const TensorType& scale = call.type(weight);
  const int first = type.shape.size() - scale.shape.size();
  bool fits = first >= 0 && scale.shape.size() > 0 && type.dtype == scale.dtype;
  for (int dim = 0; fits && dim < scale.shape.size(); ++dim) {
    fits = type.shape[first + dim] == scale.shape[dim];
  }
  if (!fits) {
    call.refuse("the weight {} doesn't have the last dims of {}", call.node(weight)->label(),
                call.node(x)->label());
  }
  if (scale.shape.size() == 1) return call.result(call->normalize(call.value(x), normalization));
  std::vector<std::int64_t> rows(type.shape.begin(), type.shape.begin() + first);
  rows.push_back(scale.shape.num_elements());
  const ValueId flat = call->reshape(call.value(x), Shape(std::span<const std::int64_t>(rows)));
  return call.result(call->reshape(call->normalize(flat, normalization), type.shape));
}

/// Returns the type of x. Refuses any x other than [N,C] and [N,C,...].
const TensorType& batch_type(Call& call, const Operand& x) {
  const TensorType& type = call.type(x);
  if (type.shape.size() < 2) {
    call.refuse("{} has no dim C; expected [N,C] or [N,C,...]", call.node(x)->label());
  }
  return type;
}

/// Returns `tensor`, which has one element for each channel, in a shape that broadcasts to
/// x[N,C,...] of this type.
Tensor by_channel(Call& call, const Tensor& tensor, std::string_view what, const TensorType& x) {
  const TensorType channels{x.dtype, {x.shape[1]}};
  if (call.type(tensor) != channels) {
    call.refuse("the {} {} doesn't fit: expected {}, one element for each channel of {}", what,
                call.node(tensor)->label(), channels.to_string(), x.to_string());
  }
  DimList sizes{x.shape[1]};
  for (int dim = 2; dim < x.shape.size(); ++dim) sizes.push_back(1);
  return reshape(tensor, Shape(std::span<const std::int64_t>(sizes)));
}

}  // namespace

Tensor layer_norm(Operand x, const Tensor& weight, const Tensor& bias, double eps) {
  Call call("layer_norm", x.loc());
  if (call.widens(x, weight, bias)) {
    return layer_norm(call.widened(x), call.widened(weight), call.widened(bias), eps);
  }
  const Tensor y = normalized(call, x, weight, {.center = true, .eps = eps}) * weight;
  if (bias.defined() && call.type(bias) != call.type(weight)) {
    call.refuse("the bias {} doesn't have the type of the weight {}", call.node(bias)->label(),
                call.node(weight)->label());
  }
  return bias.defined() ? y + bias : y;
}

Tensor rms_norm(Operand x, const Tensor& weight, double eps) {
  Call call("rms_norm", x.loc());
  if (call.widens(x, weight)) return rms_norm(call.widened(x), call.widened(weight), eps);
  return normalized(call, x, weight, {.center = false, .eps = eps}) * weight;
}

BatchStatistics batch_statistics(Operand x) {
  Call call("batch_statistics", x.loc());
  if (call.widens(x)) return batch_statistics(call.widened(x));
  const auto [dtype, shape] = batch_type(call, x);
  if (is_half(dtype)) {
    const auto [mean, variance] = batch_statistics(cast(x, DType::f32));
    return {cast(mean, dtype), cast(variance, dtype)};
  }
  std::vector<int> others{0};
  for (int dim = 2; dim < shape.size(); ++dim) others.push_back(dim);
  const Tensor center = mean(x, others, true);
  const Tensor off = x - center;
  return {reshape(center, {shape[1]}), mean(off * off, others)};
}

Tensor batch_norm(Operand x, const BatchStatistics& statistics, const Tensor& weight,
                  const Tensor& bias, double eps) {
  Call call("batch_norm", x.loc());
  const auto& [mean, variance] = statistics;
  if (call.widens(x, mean, variance, weight, bias)) {
    return batch_norm(call.widened(x), {call.widened(mean), call.widened(variance)},
                      call.widened(weight), call.widened(bias), eps);
  }
  const TensorType type = batch_type(call, x);
  const auto spread = [&](const Tensor& tensor, std::string_view what) {
    return by_channel(call, tensor, what, type);
  };
  Tensor scale = rsqrt(spread(variance, "variance") + eps);
  if (weight.defined()) scale = scale * spread(weight, "weight");
  const Tensor y = (x - spread(mean, "mean")) * scale;
  return bias.defined() ? y + spread(bias, "bias") : y;
}

Tensor group_norm(Operand x, std::int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps) {
  Call call("group_norm", x.loc());
  if (call.widens(x, weight, bias)) {
    return group_norm(call.widened(x), num_groups, call.widened(weight), call.widened(bias), eps);
  }
  const TensorType type = batch_type(call, x);
  if (num_groups < 1 || type.shape[1] % num_groups != 0) {
    call.refuse("num_groups = {}: expected a divisor of the {} channels of {}", num_groups,
                type.shape[1], call.node(x)->label());
  }
  const std::int64_t rows = type.shape[0] * num_groups;
  const std::int64_t size = rows == 0 ? 1 : type.num_elements() / rows;
  const ValueId groups = call->reshape(call.value(x), {type.shape[0], num_groups, size});
  Tensor y =
      call.result(call->reshape(call->normalize(groups, {.center = true, .eps = eps}), type.shape));
  if (weight.defined()) y = y * by_channel(call, weight, "weight", type);
  return bias.defined() ? y + by_channel(call, bias, "bias", type) : y;
}

Tensor instance_norm(Operand x, const Tensor& weight, const Tensor& bias, double eps) {
  Call call("instance_norm", x.loc());
  const TensorType type = batch_type(call, x);
  if (type.shape.size() < 3) {
    call.refuse("{} has only one element for each channel; expected [N,C,...]",
                call.node(x)->label());
  }
  return group_norm(x, type.shape[1], weight, bias, eps);
}

}  // namespace weft
