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

/// A loss compares element by element: operands that need broadcasting are an error.
void expect_like(Call& call, const Operand& input, const Tensor& target) {
  if (call.type(input) == call.type(target)) return;
  call.refuse("{} and the target {} differ; both must have one type", call.type(input).to_string(),
              call.type(target).to_string());
}

/// The weights as a factor of `losses`, whose dims begin with theirs.
Tensor row_weights(Call& call, const Tensor& losses, const Tensor& weight) {
  const TensorType& type = call.type(losses);
  const Shape& rows = call.type(weight).shape;
  bool fits = rows.size() <= type.shape.size() && is_floating(call.type(weight).dtype);
  for (int dim = 0; fits && dim < rows.size(); ++dim) fits = rows[dim] == type.shape[dim];
  if (!fits) {
    call.refuse(
        "the sample_weight {} doesn't fit the losses {}: it takes a floating tensor of "
        "their first dims",
        call.node(weight)->label(), type.to_string());
  }
  DimList sizes;
  for (int dim = 0; dim < type.shape.size(); ++dim) {
    sizes.push_back(dim < rows.size() ? rows[dim] : 1);
  }
  return reshape(cast(weight, type.dtype), Shape(std::span<const std::int64_t>(sizes)));
}

/// The mean of the losses, weighted if there is a weight.
Tensor mean_of(Call& call, const Tensor& losses, const Tensor& weight) {
  if (!weight.defined()) return mean(losses);
  const Tensor factor = row_weights(call, losses, weight);
  const auto per_row = static_cast<double>(losses.num_elements() / weight.num_elements());
  return sum(losses * factor) / (sum(factor) * per_row);
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

Tensor cross_entropy(Operand logits, const Tensor& labels, const CrossEntropyOptions& options) {
  Call call("cross_entropy", logits.loc());
  if (call.widens(logits)) return cross_entropy(call.widened(logits), labels, options);
  const TensorType type = call.type(logits);
  const int classes = type.shape.size() - 1;
  if (classes < 0 ||
      call.type(labels) !=
          TensorType{DType::i32, Shape(std::span(type.shape.begin(), type.shape.end() - 1))}) {
    call.refuse("logits {} and labels {} don't fit; it takes [...,classes] and i32[...]",
                type.to_string(), call.type(labels).to_string());
  }
  const ValueId x = call.value(logits);
  const ValueId given = call.value(labels);
  const bool ignores = options.ignore_index || call.trace().has_ignored(given);
  const std::int32_t ignored = options.ignore_index.value_or(kIgnoreIndex);
  const ValueId checked = call->check_index(given, type.shape[classes], ignores ? ignored : 0);
  const Tensor losses = call.result(call->cross_entropy(x, checked));
  if (!ignores) return mean_of(call, losses, options.sample_weight);
  const Tensor counted = not_equal(labels, double(ignored));
  if (!options.sample_weight.defined()) {
    return sum(where(counted, losses, 0.0)) / sum(cast(counted, type.dtype));
  }
  const Tensor factor = row_weights(call, losses, options.sample_weight);
  const Tensor counts = cast(counted, type.dtype) * factor;
  return sum(where(counted, losses * factor, 0.0)) / sum(counts);
}

Tensor mse_loss(Operand input, const Tensor& target, const LossOptions& options) {
  Call call("mse_loss", input.loc());
  if (call.widens(input, target)) {
    return mse_loss(call.widened(input), call.widened(target), options);
  }
  expect_like(call, input, target);
  const Tensor error = input - target;
  return mean_of(call, error * error, options.sample_weight);
}

Tensor l1_loss(Operand input, const Tensor& target, const LossOptions& options) {
  Call call("l1_loss", input.loc());
  if (call.widens(input, target)) {
    return l1_loss(call.widened(input), call.widened(target), options);
  }
  expect_like(call, input, target);
  return mean_of(call, abs(input - target), options.sample_weight);
}

Tensor binary_cross_entropy_with_logits(Operand logits, const Tensor& target,
                                        const LossOptions& options) {
  Call call("binary_cross_entropy_with_logits", logits.loc());
  if (call.widens(logits, target)) {
    return binary_cross_entropy_with_logits(call.widened(logits), call.widened(target), options);
  }
  expect_like(call, logits, target);
  // log(1 + e^x) without overflow, less x where the target is 1.
  return mean_of(call, maximum(logits, 0.0) - logits * target + log(exp(-abs(logits)) + 1),
                 options.sample_weight);
}

}  // namespace weft
