#include <weft/functional.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Applies `rows` to x with `dim` moved to the end, where the op's rows are.
template <typename RowOp>
Tensor along_dim(Call& call, const Operand& x, int dim, RowOp rows) {
  const int num_dims = call.type(x).shape.size();
  const int axis = call.dim_of(dim, num_dims);
  if (axis == num_dims - 1) return call.result(rows(call.value(x)));
  const Tensor turned = transpose(x, axis, -1);
  return transpose(call.result(rows(call.value(turned))), axis, -1);
}

/// x / 6 + 1/2, from 0 to 1; flat from -3 and from 3 on, with the ends.
Tensor hard_slope(const Tensor& x) {
  const Tensor below = where(greater_equal(x, 3.0), 1.0, x * (1.0 / 6) + 0.5);
  return where(less_equal(x, -3.0), 0.0, below);
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
    call.refuse("{} and the weight {} don't fit; it takes [...,in] and [out,in] of one dtype",
                call.node(x)->label(), call.node(weight)->label());
  }
  if (bias.defined() && call.type(bias).shape != Shape{matrix.shape[0]}) {
    call.refuse("the bias {} doesn't fit the weight {}: it takes [out] and [out,in]",
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
    // (tanh(u) + 1) / 2 is sigmoid(2 u), which is fewer ops and loses no bits near tanh(u) = -1.
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
  return call.rounded_once(x, [&](const Tensor& wide) {
    const Tensor is_positive = greater(wide, 0.0);
    return where(is_positive, wide, expm1(where(is_positive, 0.0, wide)) * alpha);
  });
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
  // The factor's gradient is 0 beyond its kinks, so no infinity is multiplied by a 0 in x's.
  return call.rounded_once(x, [](const Tensor& wide) { return wide * hard_slope(wide); });
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
    call.refuse("the weight {} has no rows; it takes [rows,...]", call.node(weight)->label());
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
  // As many dims as the result has, so that a row's mark broadcasts along the row.
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
