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

/// of(x); of bf16 and f16 it is computed in f32, so that the result alone is rounded, as in torch.
template <typename Function>
Tensor rounded_once(Call& call, const Operand& x, Function of) {
  const DType dtype = call.type(x).dtype;
  return is_half(dtype) ? cast(of(cast(x, DType::f32)), dtype) : of(x.tensor());
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
  return rounded_once(call, x, [&](const Tensor& wide) {
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
  return rounded_once(call, x, [](const Tensor& wide) { return wide * sigmoid(wide); });
}

Tensor leaky_relu(Operand x, double negative_slope) {
  Call call("leaky_relu", x.loc());
  return where(greater(x, 0.0), x, x * negative_slope);
}

Tensor elu(Operand x, double alpha) {
  Call call("elu", x.loc());
  return rounded_once(call, x, [&](const Tensor& wide) {
    const Tensor is_positive = greater(wide, 0.0);
    return where(is_positive, wide, expm1(where(is_positive, 0.0, wide)) * alpha);
  });
}

Tensor mish(Operand x) {
  Call call("mish", x.loc());
  return rounded_once(call, x, [](const Tensor& wide) { return wide * tanh(softplus(wide)); });
}

Tensor hardsigmoid(Operand x) {
  Call call("hardsigmoid", x.loc());
  return rounded_once(call, x, [](const Tensor& wide) {
    // Flat from -3 and from 3 on, with the ends.
    const Tensor below = where(greater_equal(wide, 3.0), 1.0, wide * (1.0 / 6) + 0.5);
    return where(less_equal(wide, -3.0), 0.0, below);
  });
}

Tensor hardswish(Operand x) {
  Call call("hardswish", x.loc());
  return rounded_once(call, x, [](const Tensor& wide) {
    const Tensor between = wide * (wide + 3) / 6;  // and at -3 and 3, where torch has its gradients
    return where(less(wide, -3), 0.0, where(greater(wide, 3), wide, between));
  });
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

Tensor embedding(Operand weight, const Tensor& index) {
  Call call("embedding", weight.loc());
  if (call.type(weight).shape.size() == 0) {
    call.refuse("the weight {} has no rows; it takes [rows,...]", call.node(weight)->label());
  }
  const ValueId table = call.value(weight);
  const ValueId checked =
      call->check_index(call.value(call.index(index)), call.type(weight).shape[0]);
  return call.result(call->gather(table, checked));
}

Tensor dropout(Operand x, double p) {
  Call call("dropout", x.loc());
  const TensorType type = call.type(x);
  if (!(p >= 0 && p <= 1)) call.refuse("p = {}: expected a probability, from 0 to 1", p);
  if (!is_floating(type.dtype)) {
    call.refuse("{} isn't floating; cast it first", call.node(x)->label());
  }
  if (p == 0) return call.result(call.value(x));
  if (p == 1) return call.result(call->constant(0, type));
  const ValueId words = call.trace().random_bits(type.shape, call.loc());
  const ValueId bound = call->constant(std::floor(p * 0x1p32), {DType::u32, type.shape});
  const Tensor keeps = call.result(call->compare(CompareDirection::ge, words, bound));
  return where(keeps, x * (1 / (1 - p)), 0.0);
}

}  // namespace weft
