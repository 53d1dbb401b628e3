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
  if (approximate == Gelu::exact) {
    return x * 0.5 * (erf(x * (1 / std::numbers::sqrt2)) + 1);
  }
  const double slope = std::sqrt(2 / std::numbers::pi);
  const Tensor inner = (x + x * x * x * 0.044715) * slope;
  return x * 0.5 * (tanh(inner) + 1);
}

Tensor silu(Operand x) {
  Call call("silu", x.loc());
  return x * sigmoid(x);
}

Tensor leaky_relu(Operand x, double negative_slope) {
  Call call("leaky_relu", x.loc());
  return where(greater(x, 0.0), x, x * negative_slope);
}

Tensor elu(Operand x, double alpha) {
  Call call("elu", x.loc());
  const Tensor is_positive = greater(x, 0.0);
  return where(is_positive, x, expm1(where(is_positive, 0.0, x)) * alpha);
}

Tensor mish(Operand x) {
  Call call("mish", x.loc());
  return x * tanh(softplus(x));
}

Tensor hardsigmoid(Operand x) {
  Call call("hardsigmoid", x.loc());
  // Flat from -3 and from 3 on, with the ends.
  const Tensor below = where(greater_equal(x, 3.0), 1.0, x * (1.0 / 6) + 0.5);
  return where(less_equal(x, -3.0), 0.0, below);
}

Tensor hardswish(Operand x) {
  Call call("hardswish", x.loc());
  const Tensor between = x * (x + 3) / 6;  // at -3 and 3, too, where torch has its gradients
  return where(less(x, -3), 0.0, where(greater(x, 3), x, between));
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

Tensor rope(Operand x, double base) {
  Call call("rope", x.loc());
  if (call.widens(x)) return rope(call.widened(x), base);
  const TensorType type = call.type(x);
  const int last = type.shape.size() - 1;
  if (last < 1 || type.shape[last] % 2 != 0 || !is_floating(type.dtype) || !(base > 0)) {
    call.refuse("{} and base {}: it takes floating [...,S,K], K even, and a base above 0",
                call.node(x)->label(), base);
  }
  const std::int64_t half = type.shape[last] / 2;
  const Tensor rates = exp(iota({half}, 0, DType::f64) * (-std::log(base) / double(half)));
  const Tensor angles = iota({type.shape[last - 1], half}, 0, DType::f64) * rates;
  const Tensor c = cast(cos(angles), type.dtype);
  const Tensor s = cast(sin(angles), type.dtype);
  const Tensor first = slice(x, last, 0, half);
  const Tensor second = slice(x, last, half, 2 * half);
  return cat({first * c - second * s, second * c + first * s}, last);
}

Tensor attention(Operand q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  Call call("attention", q.loc());
  if (call.lowers(q, k, v)) {
    return attention(call.lowered(q), call.lowered(k), call.lowered(v), options);
  }
  const TensorType query = call.type(q);
  const TensorType& key = call.type(k);
  const TensorType& value = call.type(v);
  const auto fits = [](const Shape& a, const Shape& b, std::initializer_list<int> dims) {
    return std::ranges::all_of(dims, [&](int dim) { return a[dim] == b[dim]; });
  };
  if (query.shape.size() != 4 || key.shape.size() != 4 || value.shape.size() != 4 ||
      query.dtype != key.dtype || key.dtype != value.dtype ||
      !fits(query.shape, key.shape, {0, 1, 3}) || !fits(key.shape, value.shape, {0, 1, 2})) {
    call.refuse(
        "q {}, k {} and v {} don't fit; it takes [B,H,S,K], [B,H,T,K] and [B,H,T,E] of one "
        "dtype",
        query.to_string(), key.to_string(), value.to_string());
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape[3])));
  const ValueId queries = call.value(q);
  const ValueId keys = call.value(k);
  return call.result(
      call->attention(queries, keys, call.value(v), {.causal = options.causal, .scale = scale}));
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
