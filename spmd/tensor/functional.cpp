#include <weft/spmd/tensor/functional.hpp>

#include <cmath>
#include <numeric>

#include <weft/spmd/tensor/call.hpp>

namespace weft {
namespace {

std::vector<std::int64_t> leading_dims(int count) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(count));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

/// x - amax(x) along `dim`. The maximum counts as a constant: what would flow back through it
/// cancels.
Tensor shifted_below_zero(Call& call, const Operand& x, int dim) {
  const Tensor top = amax(x, {dim}, /*keepdim=*/true);
  call.trace().stop_gradient(call.value(top));
  return x - top;
}

}  // namespace

Tensor matmul(Operand a, Operand b) {
  Call call("matmul", a.loc());
  const TensorType& left = call.type(a);
  const TensorType& right = call.type(b);
  const int batch = left.shape.size() - 2;
  bool fits = batch >= 0 && left.dtype == right.dtype && right.shape.size() == batch + 2 &&
              left.shape[batch + 1] == right.shape[batch];
  for (int dim = 0; fits && dim < batch; ++dim) fits = left.shape[dim] == right.shape[dim];
  if (!fits) {
    call.refuse(
        "{} and {} don't fit; it takes [...,m,k] and [...,k,n] of one dtype and batch shape",
        left.to_string(), right.to_string());
  }
  const ValueId lhs = call.value(a);
  return call.result(call->dot_general(lhs, call.value(b),
                                       {.lhs_batch = leading_dims(batch),
                                        .rhs_batch = leading_dims(batch),
                                        .lhs_contracting = {batch + 1},
                                        .rhs_contracting = {batch}}));
}

Tensor linear(Operand x, const Tensor& weight, const Tensor& bias) {
  Call call("linear", x.loc());
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

Tensor log_softmax(Operand x, int dim) {
  Call call("log_softmax", x.loc());
  const Tensor shifted = shifted_below_zero(call, x, dim);
  return shifted - log(sum(exp(shifted), {dim}, /*keepdim=*/true));
}

Tensor softmax(Operand x, int dim) {
  Call call("softmax", x.loc());
  const Tensor powers = exp(shifted_below_zero(call, x, dim));
  return powers / sum(powers, {dim}, /*keepdim=*/true);
}

Tensor embedding(Operand weight, const Tensor& index) {
  Call call("embedding", weight.loc());
  if (call.type(weight).shape.size() == 0 || call.type(index).dtype != DType::i32) {
    call.refuse("the weight {} and the index {} don't fit; it takes [rows,...] and i32[...]",
                call.node(weight)->label(), call.node(index)->label());
  }
  const ValueId table = call.value(weight);
  return call.result(call->gather(table, call.value(index)));
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

Tensor cross_entropy(Operand logits, const Tensor& labels) {
  Call call("cross_entropy", logits.loc());
  const TensorType& type = call.type(logits);
  if (type.shape.size() != 2 || call.type(labels) != TensorType{DType::i32, {type.shape[0]}}) {
    call.refuse("logits {} and labels {} don't fit; it takes [batch,classes] and i32[batch]",
                type.to_string(), call.type(labels).to_string());
  }
  // The label is picked by comparing, not by gathering: each chip picks from the classes it has.
  const std::int64_t batch = type.shape[0];
  const Tensor is_label = equal(iota(type.shape, 1), reshape(labels, Shape{batch, 1}));
  const Tensor picked = where(is_label, log_softmax(logits, 1), 0.0);
  return sum(picked) * (-1.0 / static_cast<double>(batch));
}

}  // namespace weft
