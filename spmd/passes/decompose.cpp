#include <weft/spmd/passes/decompose.hpp>

#include <array>
#include <limits>
#include <numeric>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Arithmetic on rows of one shape, the last dim being a row; what is computed of a row is spread
/// over it again.
class Rows {
 public:
  Rows(Builder& builder, ValueId like) : builder_(builder), type_(builder.type(like)) {}

  ValueId unary(OpKind kind, ValueId a) { return builder_.unary(kind, a); }
  ValueId exp(ValueId a) { return unary(OpKind::exponential, a); }
  ValueId add(ValueId a, ValueId b) { return builder_.binary(OpKind::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return builder_.binary(OpKind::subtract, a, b); }
  ValueId mul(ValueId a, ValueId b) { return builder_.binary(OpKind::multiply, a, b); }
  ValueId div(ValueId a, ValueId b) { return builder_.binary(OpKind::divide, a, b); }
  ValueId plus(ValueId a, double number) {
    return add(a, builder_.constant(number, builder_.type(a)));
  }
  ValueId times(ValueId a, double factor) {
    return mul(a, builder_.constant(factor, builder_.type(a)));
  }
  /// One number for each row; spread() gives it to the row's elements.
  ValueId reduce(ReduceKind kind, ValueId a) {
    return builder_.reduce(kind, a, std::array<std::int64_t, 1>{type_.shape.size() - 1});
  }
  ValueId mean(ValueId a) {
    const auto size = static_cast<double>(type_.shape[type_.shape.size() - 1]);
    return times(reduce(ReduceKind::add, a), 1 / size);
  }
  ValueId spread(ValueId row) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(type_.shape.size() - 1));
    std::iota(dims.begin(), dims.end(), 0);
    return builder_.broadcast_in_dim(row, type_.shape, dims);
  }

 private:
  Builder& builder_;
  TensorType type_;
};

ValueId below_zero(Rows& r, ValueId x) { return r.sub(x, r.spread(r.reduce(ReduceKind::max, x))); }

ValueId softmax(Builder& builder, ValueId x) {
  Rows r(builder, x);
  const ValueId powers = r.exp(below_zero(r, x));
  return r.div(powers, r.spread(r.reduce(ReduceKind::add, powers)));
}

ValueId log_softmax(Builder& builder, ValueId x) {
  Rows r(builder, x);
  const ValueId shifted = below_zero(r, x);
  const ValueId sum = r.reduce(ReduceKind::add, r.exp(shifted));
  return r.sub(shifted, r.spread(r.unary(OpKind::log, sum)));
}

ValueId softmax_grad(Builder& builder, ValueId y, ValueId g) {
  Rows r(builder, y);
  return r.mul(y, r.sub(g, r.spread(r.reduce(ReduceKind::add, r.mul(y, g)))));
}

ValueId log_softmax_grad(Builder& builder, ValueId y, ValueId g) {
  Rows r(builder, y);
  return r.sub(g, r.mul(r.exp(y), r.spread(r.reduce(ReduceKind::add, g))));
}

struct Normalized {
  ValueId y;
  ValueId scale;  ///< of the centered row, spread over it
};

Normalized normalize(Rows& r, ValueId x, const Normalization& normalization) {
  const ValueId centered = normalization.center ? r.sub(x, r.spread(r.mean(x))) : x;
  const ValueId square = r.mean(r.mul(centered, centered));
  const ValueId scale = r.spread(r.unary(OpKind::rsqrt, r.plus(square, normalization.eps)));
  return {r.mul(centered, scale), scale};
}

ValueId normalize_grad(Builder& builder, ValueId x, ValueId g, const Normalization& normalization) {
  Rows r(builder, x);
  const auto [y, scale] = normalize(r, x, normalization);
  const ValueId level = normalization.center ? r.sub(g, r.spread(r.mean(g))) : g;
  return r.mul(scale, r.sub(level, r.mul(y, r.spread(r.mean(r.mul(g, y))))));
}

/// The label is picked by comparing, not by gathering: each chip picks from the classes it has.
ValueId is_label(Builder& builder, Rows& r, ValueId x, ValueId labels) {
  const Shape& shape = builder.type(x).shape;
  const ValueId classes = builder.iota({DType::i32, shape}, shape.size() - 1);
  return builder.compare(CompareDirection::eq, classes, r.spread(labels));
}

ValueId cross_entropy(Builder& builder, ValueId x, ValueId labels) {
  Rows r(builder, x);
  const ValueId picked = builder.select(is_label(builder, r, x, labels), log_softmax(builder, x),
                                        builder.constant(0, builder.type(x)));
  return r.unary(OpKind::negate, r.reduce(ReduceKind::add, picked));
}

ValueId cross_entropy_grad(Builder& builder, ValueId x, ValueId labels, ValueId g) {
  Rows r(builder, x);
  const TensorType type = builder.type(x);
  const TensorType label = builder.type(labels);
  const auto classes = static_cast<double>(type.shape[type.shape.size() - 1]);
  const ValueId is_class = builder.binary(
      OpKind::logical_and,
      builder.compare(CompareDirection::ge, labels, builder.constant(0, label)),
      builder.compare(CompareDirection::lt, labels, builder.constant(classes, label)));
  const ValueId weight = builder.select(is_class, g, builder.constant(0, builder.type(g)));
  const ValueId target = builder.convert(is_label(builder, r, x, labels), type.dtype);
  return r.mul(r.sub(softmax(builder, x), target), r.spread(weight));
}

/// The products of two matrices for each batch and head, over the dims given of both.
ValueId product(Builder& builder, ValueId a, std::int64_t a_dim, ValueId b, std::int64_t b_dim) {
  return builder.dot_general(a, b,
                             {.lhs_batch = {0, 1},
                              .rhs_batch = {0, 1},
                              .lhs_contracting = {a_dim},
                              .rhs_contracting = {b_dim}});
}

/// [B,H,S,T].
ValueId attention_weights(Builder& builder, ValueId q, ValueId k, const AttentionForm& form) {
  ValueId scores = product(builder, q, 3, k, 3);
  const TensorType type = builder.type(scores);
  scores = builder.binary(OpKind::multiply, scores, builder.constant(form.scale, type));
  if (form.causal) {
    const TensorType place{DType::i32, type.shape};
    const ValueId unseen =
        builder.compare(CompareDirection::gt, builder.iota(place, 3), builder.iota(place, 2));
    const double least = -std::numeric_limits<double>::infinity();
    scores = builder.select(unseen, builder.constant(least, type), scores);
  }
  return softmax(builder, scores);
}

ValueId attention_grad(Builder& builder, std::span<const ValueId> operands,
                       const AttentionForm& form) {
  const auto q = operands[0];
  const auto k = operands[1];
  const auto v = operands[2];
  const auto g = operands[4];
  const ValueId weights = attention_weights(builder, q, k, form);
  ValueId of_scores = softmax_grad(builder, weights, product(builder, g, 3, v, 3));
  of_scores = builder.binary(OpKind::multiply, of_scores,
                             builder.constant(form.scale, builder.type(of_scores)));
  const std::array parts{product(builder, of_scores, 3, k, 2), product(builder, of_scores, 2, q, 2),
                         product(builder, weights, 2, g, 2)};
  return builder.concatenate(parts, 2);
}

}  // namespace

ValueId decompose(Builder& builder, OpKind kind, std::span<const ValueId> operands,
                  std::span<const std::int64_t> attrs) {
  const ValueId a = operands[0];
  switch (kind) {
    case OpKind::softmax: return softmax(builder, a);
    case OpKind::log_softmax: return log_softmax(builder, a);
    case OpKind::softmax_grad: return softmax_grad(builder, a, operands[1]);
    case OpKind::log_softmax_grad: return log_softmax_grad(builder, a, operands[1]);
    case OpKind::normalize: {
      Rows r(builder, a);
      return normalize(r, a, normalization_of(attrs)).y;
    }
    case OpKind::normalize_grad:
      return normalize_grad(builder, a, operands[1], normalization_of(attrs));
    case OpKind::attention:
      return product(builder, attention_weights(builder, a, operands[1], attention_form_of(attrs)),
                     3, operands[2], 2);
    case OpKind::cross_entropy: return cross_entropy(builder, a, operands[1]);
    case OpKind::cross_entropy_grad:
      return cross_entropy_grad(builder, a, operands[1], operands[2]);
    default: break;
  }
  WEFT_CHECK(kind == OpKind::attention_grad, to_string(kind));
  return attention_grad(builder, operands, attention_form_of(attrs));
}

}  // namespace weft
