#include <weft/nn/functional.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Applies `rows`, whose op works along the last dim, to dim `dim` of x, by moving the dim to the
/// end and back.
template <typename RowOp>
Tensor along_dim(Call& call, const Operand& x, int dim, RowOp rows) {
  const int num_dims = call.type(x).shape.size();
  const int axis = call.dim_of(dim, num_dims);
  if (axis == num_dims - 1) return call.result(rows(call.value(x)));
  const Tensor turned = transpose(x, axis, -1);
  return transpose(call.result(rows(call.value(turned))), axis, -1);
}

/// Returns x / 6 + 1/2, clamped to [0, 1]. The gradient at -3 and at 3 is 0.
Tensor hard_slope(const Tensor& x) {
  const Tensor below = where(greater_equal(x, 3.0), 1.0, x * (1.0 / 6) + 0.5);
  return where(less_equal(x, -3.0), 0.0, below);
}

/// Computes torch's general elu: scale * (e^(x rate) - 1) if x <= 0, otherwise (also for NaN) x.
Tensor exponential_below_zero(const Tensor& x, double scale, double rate) {
  const Tensor is_below = less_equal(x, 0.0);
  const Tensor below = where(is_below, x, 0.0);
  return where(is_below, expm1(rate == 1 ? below : below * rate) * scale, x);
}

}  // namespace

Tensor linear(Operand x, const Tensor& weight, const Tensor& bias) {
  Call call("linear", x.loc());
  if (call.lowers(x, weight, bias)) {
    return linear(call.lowered(x), call.lowered(weight), call.lowered(bias));
  }
  const TensorType& in = call.type(x);
  const TensorType& matrix = call.type(weight);
  const int last = in.shape.size() - 1;
  if (last < 0 || matrix.shape.size() != 2 || in.dtype != matrix.dtype ||
      in.shape[last] != matrix.shape[1]) {
    call.refuse("{} and the weight {} don't fit; expected [...,in] and [out,in] of one dtype",
                call.node(x)->label(), call.node(weight)->label());
  }
  if (bias.defined() && call.type(bias).shape != Shape{matrix.shape[0]}) {
    call.refuse("the bias {} doesn't fit the weight {}: expected [out] and [out,in]",
                call.node(bias)->label(), call.node(weight)->label());
  }
  const ValueId lhs = call.value(x);
  const Tensor product = call.result(call->dot_general(
      lhs, call.value(weight),
      {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {last}, .rhs_contracting = {1}}));
  return bias.defined() ? product + bias : product;
}

Tensor gelu(Operand x, Gelu approximate) {
  Call call("gelu", x.loc());
  return call.rounded_once(x, [&](const Tensor& wide) {
    if (approximate == Gelu::exact) {
      return wide * 0.5 * (erf(wide * (1 / std::numbers::sqrt2)) + 1);
    }
    // (tanh(u) + 1) / 2 equals sigmoid(2 u), which takes fewer ops and loses no bits near tanh(u) =
    // -1.
    const double slope = 2 * std::sqrt(2 / std::numbers::pi);
    return wide * sigmoid(wide * (wide * wide * (0.044715 * slope) + slope));
  });
}

Tensor silu(Operand x) {
  Call call("silu", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return wide * sigmoid(wide); });
}

Tensor leaky_relu(Operand x, double negative_slope) {
  Call call("leaky_relu", x.loc());
  return where(greater(x, 0.0), x, x * negative_slope);
}

Tensor elu(Operand x, double alpha) {
  Call call("elu", x.loc());
  return call.rounded_once(
      x, [&](const Tensor& wide) { return exponential_below_zero(wide, alpha, 1); });
}

Tensor celu(Operand x, double alpha) {
  Call call("celu", x.loc());
  if (alpha == 0 || std::isnan(alpha)) {
    call.refuse("alpha = {}: expected a number other than 0", alpha);
  }
  return call.rounded_once(
      x, [&](const Tensor& wide) { return exponential_below_zero(wide, alpha, 1 / alpha); });
}

Tensor selu(Operand x) {
  Call call("selu", x.loc());
  constexpr double kAlpha = 1.6732632423543772;
  constexpr double kScale = 1.0507009873554805;
  return call.rounded_once(
      x, [](const Tensor& wide) { return exponential_below_zero(wide, kAlpha, 1) * kScale; });
}

Tensor mish(Operand x) {
  Call call("mish", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return wide * tanh(softplus(wide)); });
}

Tensor hardsigmoid(Operand x) {
  Call call("hardsigmoid", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return hard_slope(wide); });
}

Tensor hardswish(Operand x) {
  Call call("hardswish", x.loc());
  // The product rule gives no NaN for an infinite x, because hard_slope() passes no gradient beyond
  // -3 and 3.
  return call.rounded_once(x, [](const Tensor& wide) { return wide * hard_slope(wide); });
}

Tensor hardtanh(Operand x, double min_val, double max_val) {
  Call call("hardtanh", x.loc());
  if (!(min_val <= max_val)) {
    call.refuse("min_val = {}, max_val = {}: expected a min_val that isn't above max_val", min_val,
                max_val);
  }
  return clamp(x, min_val, max_val);
}

Tensor relu6(Operand x) {
  Call call("relu6", x.loc());
  return clamp(x, 0, 6);
}

Tensor threshold(Operand x, double threshold, double value) {
  Call call("threshold", x.loc());
  return where(less_equal(x, threshold), value, x);
}

Tensor hardshrink(Operand x, double lambd) {
  Call call("hardshrink", x.loc());
  return where(logical_and(greater_equal(x, -lambd), less_equal(x, lambd)), 0.0, x);
}

Tensor softshrink(Operand x, double lambd) {
  Call call("softshrink", x.loc());
  if (!(lambd >= 0)) call.refuse("lambd = {}: expected 0 or more", lambd);
  return call.rounded_once(x, [&](const Tensor& wide) {
    const Tensor is_inside = less_equal(abs(wide), lambd);
    return where(is_inside, 0.0, wide - sign(wide) * lambd);
  });
}

Tensor tanhshrink(Operand x) {
  Call call("tanhshrink", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return wide - tanh(wide); });
}

Tensor softsign(Operand x) {
  Call call("softsign", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return wide / (abs(wide) + 1); });
}

Tensor logsigmoid(Operand x) {
  Call call("logsigmoid", x.loc());
  return call.rounded_once(x, [](const Tensor& wide) { return -softplus(-wide); });
}

Tensor prelu(Operand x, const Tensor& weight) {
  Call call("prelu", x.loc());
  const TensorType type = call.type(x);
  const TensorType slopes = call.type(weight);
  const std::int64_t count = slopes.num_elements();
  const std::int64_t channels = type.shape.size() > 1 ? type.shape[1] : 1;
  if (slopes.shape.size() > 1 || (count != 1 && count != channels)) {
    call.refuse("the weight {} doesn't fit {}: expected one number, or {} numbers for dim 1",
                call.node(weight)->label(), call.node(x)->label(), channels);
  }
  Dims sizes(static_cast<std::size_t>(type.shape.size()), 1);
  if (count != 1) sizes[1] = count;
  return where(greater(x, 0.0), x, x * reshape(weight, Shape(sizes)));
}

Tensor glu(Operand x, int dim) {
  Call call("glu", x.loc());
  const Shape shape = call.type(x).shape;
  if (shape.size() == 0) call.refuse("{} has no dims", call.node(x)->label());
  const int axis = call.dim_of(dim, shape.size());
  if (shape[axis] % 2 != 0) {
    call.refuse("{}: dim {} has {} elements; expected an even number, for two halves",
                call.node(x)->label(), dim, shape[axis]);
  }
  const std::int64_t half = shape[axis] / 2;
  return call.rounded_once(x, [&](const Tensor& wide) {
    return slice(wide, axis, 0, half) * sigmoid(slice(wide, axis, half, 2 * half));
  });
}

Tensor softmin(Operand x, int dim) {
  Call call("softmin", x.loc());
  return softmax(-x.tensor(), dim);
}

Tensor log_softmax(Operand x, int dim) {
  Call call("log_softmax", x.loc());
  if (call.widens(x)) return log_softmax(call.widened(x), dim);
  return along_dim(call, x, dim, [&](ValueId rows) { return call->log_softmax(rows); });
}

Tensor softmax(Operand x, int dim) {
  Call call("softmax", x.loc());
  if (call.widens(x)) return softmax(call.widened(x), dim);
  return along_dim(call, x, dim, [&](ValueId rows) { return call->softmax(rows); });
}

Tensor embedding(Operand weight, const Tensor& index, std::optional<std::int64_t> padding_idx) {
  Call call("embedding", weight.loc());
  if (call.type(weight).shape.size() == 0) {
    call.refuse("the weight {} has no rows; expected [rows,...]", call.node(weight)->label());
  }
  const std::int64_t rows = call.type(weight).shape[0];
  const ValueId table = call.value(weight);
  const ValueId checked = call->check_index(call.value(call.index(index)), rows);
  const Tensor found = call.result(call->gather(table, checked));
  if (!padding_idx) return found;
  if (*padding_idx < -rows || *padding_idx >= rows) {
    call.refuse("padding_idx = {}: expected a row of the weight {}, from {} to {}", *padding_idx,
                call.node(weight)->label(), -rows, rows - 1);
  }
  const std::int64_t padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  // The index gets trailing dims of size 1, so that its comparison with `padding` broadcasts to the
  // rows.
  const Shape& places = call.type(index).shape;
  Dims sizes(places.begin(), places.end());
  sizes.resize(static_cast<std::size_t>(found.shape().size()), 1);
  const Tensor is_padding =
      reshape(equal(call.result(checked), static_cast<double>(padding)), Shape(sizes));
  return where(is_padding, stop_gradient(found), found);
}

Tensor normalize(Operand x, double p, int dim, double eps) {
  Call call("normalize", x.loc());
  if (!(eps > 0)) call.refuse("eps = {}: expected more than 0", eps);
  return call.rounded_once(
      x, [&](const Tensor& wide) { return wide / maximum(norm(wide, p, {dim}, true), eps); });
}

}  // namespace weft
