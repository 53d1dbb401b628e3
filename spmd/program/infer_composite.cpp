#include <weft/spmd/program/infer_composite.hpp>

#include <cmath>

#include <weft/spmd/program/composite.hpp>
#include <weft/spmd/program/infer_checks.hpp>

namespace weft::infer {
namespace {

void expect_flag(const OpSignature& op, std::string_view name) {
  if (op.attrs[0] != 0 && op.attrs[0] != 1) {
    reject(op, "{} is {}; expected 0 or 1", name, op.attrs[0]);
  }
}

const TensorType& expect_rows(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  if (!is_floating(x.dtype) || x.shape.size() == 0) {
    reject(op, "needs a floating dtype and one dim at least");
  }
  return x;
}

/// Of softmax and normalize, and of their gradients.
TensorType row_op(const OpSignature& op) {
  const bool normalizes = op.kind == OpKind::normalize || op.kind == OpKind::normalize_grad;
  const bool is_forward =
      op.kind == OpKind::softmax || op.kind == OpKind::log_softmax || op.kind == OpKind::normalize;
  expect_counts(op, is_forward ? 1 : 2, normalizes ? 2 : 0);
  if (!is_forward) expect_equal_operands(op, 0);
  const TensorType& x = expect_rows(op);
  if (!normalizes) return x;
  expect_flag(op, "center");
  const double eps = normalization_of(op.attrs).eps;
  if (!(eps >= 0) || std::isinf(eps)) reject(op, "eps is {}; expected 0 or more", eps);
  return x;
}

/// Gives {B, H, S, T, K, E}.
std::array<std::int64_t, 6> expect_heads(const OpSignature& op) {
  const TensorType& q = op.operands[0];
  const TensorType& k = op.operands[1];
  const TensorType& v = op.operands[2];
  bool fits = is_floating(q.dtype) && q.dtype == k.dtype && q.dtype == v.dtype;
  for (const TensorType* type : {&q, &k, &v}) fits = fits && type->shape.size() == 4;
  const auto same = [](const TensorType& a, const TensorType& b, std::array<int, 3> dims) {
    return std::ranges::all_of(dims, [&](int dim) { return a.shape[dim] == b.shape[dim]; });
  };
  if (!fits || !same(q, k, {0, 1, 3}) || !same(k, v, {0, 1, 2})) {
    reject(op, "takes [B,H,S,K], [B,H,T,K] and [B,H,T,E] of one floating dtype");
  }
  if (k.shape[2] == 0 || k.shape[3] == 0) reject(op, "there are no keys, or they are empty");
  const double scale = attention_form_of(op.attrs).scale;
  if (!std::isfinite(scale)) reject(op, "the scale is {}; it must be finite", scale);
  return {q.shape[0], q.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]};
}

TensorType attention(const OpSignature& op) {
  expect_counts(op, 3, 3);
  expect_flag(op, "causal");
  expect_atom_lists(op, op.attrs.subspan(2));
  const auto [b, h, s, t, k, e] = expect_heads(op);
  return {op.operands[0].dtype, {b, h, s, e}};
}

TensorType attention_grad(const OpSignature& op) {
  expect_counts(op, 5, 2);
  expect_flag(op, "causal");
  const auto [b, h, s, t, k, e] = expect_heads(op);
  const TensorType y{op.operands[0].dtype, {b, h, s, e}};
  if (op.operands[3] != y || op.operands[4] != y) {
    reject(op, "the result and its cotangent must be {}", y.to_string());
  }
  if (k != e) reject(op, "keys of {} and values of {} elements make no one tensor", k, e);
  return {y.dtype, {b, h, s + 2 * t, k}};
}

TensorType cross_entropy(const OpSignature& op) {
  const bool is_grad = op.kind == OpKind::cross_entropy_grad;
  expect_counts(op, is_grad ? 3 : 2, 0);
  const TensorType& x = expect_rows(op);
  const Shape rows(std::span(x.shape.begin(), x.shape.end() - 1));
  if (op.operands[1] != TensorType{DType::i32, rows}) {
    reject(op, "takes [..,classes] and labels i32[..]");
  }
  const TensorType losses{x.dtype, rows};
  if (is_grad && op.operands[2] != losses) {
    reject(op, "the cotangent must be {}", losses.to_string());
  }
  return is_grad ? x : losses;
}

}  // namespace

TensorType composite_op(const OpSignature& op) {
  switch (op.kind) {
    case OpKind::attention: return attention(op);
    case OpKind::attention_grad: return attention_grad(op);
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad: return cross_entropy(op);
    default: return row_op(op);
  }
}

}  // namespace weft::infer
