/// Defines the ops on rows along the last dim: softmax, norms, cross entropy.

#include <array>
#include <cmath>
#include <numeric>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/softmax.hpp"

namespace weft {
namespace {

using infer::reject;

// The following functions infer the type of an op's result.

const TensorType& expect_rows(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  if (!is_floating(x.dtype) || x.shape.size() == 0) {
    reject(op, "needs a floating dtype and at least one dim");
  }
  return x;
}

TensorType of_rows(const OpSignature& op) { return expect_rows(op); }

TensorType of_equal_rows(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  return expect_rows(op);
}

void expect_eps(const OpSignature& op) {
  const double eps = normalization_of(op.attrs).eps;
  if (!(eps >= 0) || std::isinf(eps)) reject(op, "eps is {}; expected 0 or more", eps);
}

TensorType normalized_type(const OpSignature& op) {
  const TensorType& x = expect_rows(op);
  expect_eps(op);
  return x;
}

TensorType normalized_grad_type(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  return normalized_type(op);
}

/// Returns the type that has one number for each row of x.
TensorType losses(const OpSignature& op) {
  const TensorType& x = expect_rows(op);
  const Shape rows(std::span(x.shape.begin(), x.shape.end() - 1));
  if (op.operands[1] != TensorType{DType::i32, rows}) {
    reject(op, "takes [..,classes] and labels i32[..]");
  }
  return {x.dtype, rows};
}

TensorType losses_grad(const OpSignature& op) {
  const TensorType type = losses(op);
  if (op.operands[2] != type) reject(op, "the cotangent must be {}", type.to_string());
  return op.operands[0];
}

// The following functions express ops by primitives.

/// Does arithmetic on values of one shape, whose last dim is a row.
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
  /// Reduces each row to one number. spread() repeats that number for each element of the row.
  ValueId reduce(ReduceKind kind, ValueId a) {
    return builder_.reduce(kind, a, std::array<std::int64_t, 1>{type_.shape.size() - 1});
  }
  ValueId mean(ValueId a) {
    const auto size = static_cast<double>(type_.shape[type_.shape.size() - 1]);
    return times(reduce(ReduceKind::add, a), 1 / size);
  }
  ValueId spread(ValueId row) {
    return builder_.broadcast_in_dim(row, type_.shape, consecutive_dims(0, type_.shape.size() - 1));
  }

 private:
  Builder& builder_;
  TensorType type_;
};

ValueId below_zero(Rows& r, ValueId x) { return r.sub(x, r.spread(r.reduce(ReduceKind::max, x))); }

ValueId softmax_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  Rows r(builder, operands[0]);
  const ValueId powers = r.exp(below_zero(r, operands[0]));
  return r.div(powers, r.spread(r.reduce(ReduceKind::add, powers)));
}

ValueId log_softmax_of(Builder& builder, ValueId x) {
  Rows r(builder, x);
  const ValueId shifted = below_zero(r, x);
  const ValueId sum = r.reduce(ReduceKind::add, r.exp(shifted));
  return r.sub(shifted, r.spread(r.unary(OpKind::log, sum)));
}

ValueId log_softmax_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  return log_softmax_of(builder, operands[0]);
}

ValueId softmax_grad_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  return softmax_grad_as_primitives(builder, operands[0], operands[1]);
}

ValueId log_softmax_grad_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  const ValueId y = operands[0];
  const ValueId g = operands[1];
  Rows r(builder, y);
  return r.sub(g, r.mul(r.exp(y), r.spread(r.reduce(ReduceKind::add, g))));
}

struct NormalizedValue {
  ValueId y;
  ValueId scale;  ///< the factor of the centered row, repeated over the row
};

NormalizedValue normalize_value(Rows& r, ValueId x, const Normalization& normalization) {
  const ValueId centered = normalization.center ? r.sub(x, r.spread(r.mean(x))) : x;
  const ValueId square = r.mean(r.mul(centered, centered));
  const ValueId scale = r.spread(r.unary(OpKind::rsqrt, r.plus(square, normalization.eps)));
  return {r.mul(centered, scale), scale};
}

ValueId normalize_primitives(Builder& builder, std::span<const ValueId> operands, Words words) {
  Rows r(builder, operands[0]);
  return normalize_value(r, operands[0], normalization_of(words)).y;
}

ValueId normalize_grad_primitives(Builder& builder, std::span<const ValueId> operands,
                                  Words words) {
  const ValueId g = operands[1];
  const Normalization normalization = normalization_of(words);
  Rows r(builder, operands[0]);
  const auto [y, scale] = normalize_value(r, operands[0], normalization);
  const ValueId level = normalization.center ? r.sub(g, r.spread(r.mean(g))) : g;
  return r.mul(scale, r.sub(level, r.mul(y, r.spread(r.mean(r.mul(g, y))))));
}

/// Marks the element of each row's label. It compares labels with class numbers instead of
/// gathering, so that each chip handles its own classes.
ValueId is_label(Builder& builder, Rows& r, ValueId x, ValueId labels) {
  const Shape& shape = builder.type(x).shape;
  const ValueId classes = builder.iota({DType::i32, shape}, shape.size() - 1);
  return builder.compare(CompareDirection::eq, classes, r.spread(labels));
}

ValueId cross_entropy_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  const ValueId x = operands[0];
  const ValueId labels = operands[1];
  Rows r(builder, x);
  const ValueId picked = builder.select(is_label(builder, r, x, labels), log_softmax_of(builder, x),
                                        builder.constant(0, builder.type(x)));
  return r.unary(OpKind::negate, r.reduce(ReduceKind::add, picked));
}

ValueId cross_entropy_grad_primitives(Builder& builder, std::span<const ValueId> operands, Words) {
  const ValueId x = operands[0];
  const ValueId labels = operands[1];
  const ValueId g = operands[2];
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
  return r.mul(r.sub(softmax_as_primitives(builder, x), target), r.spread(weight));
}

// The following functions append the gradients of ops.

template <OpKind kGrad>
ValueId of_result(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.softmax_grad(kGrad, op.result, g);
}

ValueId normalize_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.normalize_grad(op.operands[0], g, normalization_of(op.attrs));
}

ValueId cross_entropy_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.cross_entropy_grad(op.operands[0], op.operands[1], g);
}

// The following functions compute the values of ops, for the reference interpreters.

using Row = std::span<const double>;

double dot(Row a, Row b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

double total(Row x) { return std::accumulate(x.begin(), x.end(), 0.0); }

Elements log_softmax_row(Row x) {
  double top = neutral(ReduceKind::max, DType::f64);
  for (const double element : x) top = combine(ReduceKind::max, top, element);
  double sum = 0;
  for (const double element : x) sum += std::exp(element - top);
  Elements result;
  for (const double element : x) result.push_back(element - top - std::log(sum));
  return result;
}

/// Returns g_i - e^y_i (sum of g).
Elements log_softmax_grad_row(Row y, Row g) {
  const double sum = total(g);
  Elements result;
  for (std::size_t i = 0; i < y.size(); ++i) result.push_back(g[i] - std::exp(y[i]) * sum);
  return result;
}

struct NormalizedRow {
  Elements y;
  double scale = 1;  ///< the factor of the centered row
};

NormalizedRow normalize_row(Row x, const Normalization& normalization) {
  const auto size = static_cast<double>(x.size());
  const double mean = normalization.center ? total(x) / size : 0;
  NormalizedRow result;
  for (const double element : x) result.y.push_back(element - mean);
  result.scale = 1 / std::sqrt(dot(result.y, result.y) / size + normalization.eps);
  for (double& element : result.y) element *= result.scale;
  return result;
}

/// Returns scale (g_i - mean of g - y_i (mean of g y)), without "- mean of g" if x isn't centered.
Elements normalize_grad_row(Row x, Row g, const Normalization& normalization) {
  const auto size = static_cast<double>(x.size());
  const NormalizedRow normalized = normalize_row(x, normalization);
  const double mean = normalization.center ? total(g) / size : 0;
  const double along = dot(g, normalized.y) / size;
  Elements result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    result.push_back(normalized.scale * (g[i] - mean - normalized.y[i] * along));
  }
  return result;
}

/// Applies `of_row` to each row of the first operand and the same row of the last operand.
template <typename OfRow>
Elements by_row(const Evaluation& e, OfRow of_row) {
  const Shape& shape = e.operand_shape(0);
  const auto size = static_cast<std::size_t>(shape[shape.size() - 1]);
  const Row a(e.operand(0));
  const Row b(*e.operands.back());
  Elements result;
  for (std::size_t at = 0; at < a.size(); at += size) {
    const Elements row = of_row(a.subspan(at, size), b.subspan(at, size));
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

Elements softmax_elements(const Evaluation& e) {
  return by_row(e, [](Row x, Row) { return softmax_of(x); });
}
Elements softmax_grad_elements(const Evaluation& e) { return by_row(e, softmax_grad_of); }
Elements log_softmax_elements(const Evaluation& e) {
  return by_row(e, [](Row x, Row) { return log_softmax_row(x); });
}
Elements log_softmax_grad_elements(const Evaluation& e) { return by_row(e, log_softmax_grad_row); }
Elements normalize_elements(const Evaluation& e) {
  return by_row(e, [&](Row x, Row) { return normalize_row(x, normalization_of(e.attrs())).y; });
}
Elements normalize_grad_elements(const Evaluation& e) {
  return by_row(
      e, [&](Row x, Row g) { return normalize_grad_row(x, g, normalization_of(e.attrs())); });
}

/// Returns the cotangent of x, given the losses' cotangent `g`. If `g` is null, returns the losses.
Elements entropy(const Evaluation& e, const Elements* g) {
  const Shape& shape = e.operand_shape(0);
  const auto classes = static_cast<std::size_t>(shape[shape.size() - 1]);
  Elements result;
  for (std::size_t row = 0; row < e.operand(1).size(); ++row) {
    const Elements rates = log_softmax_row(Row(e.operand(0)).subspan(row * classes, classes));
    const double label = e.operand(1)[row];
    const bool is_class = label >= 0 && label < static_cast<double>(classes);
    if (g == nullptr) {
      result.push_back(is_class ? -rates[static_cast<std::size_t>(label)] : 0);
      continue;
    }
    for (std::size_t i = 0; i < classes; ++i) {
      const double target = static_cast<double>(i) == label ? 1 : 0;
      result.push_back(is_class ? (std::exp(rates[i]) - target) * (*g)[row] : 0);
    }
  }
  return result;
}
Elements cross_entropy_elements(const Evaluation& e) { return entropy(e, nullptr); }
Elements cross_entropy_grad_elements(const Evaluation& e) { return entropy(e, &e.operand(2)); }

constexpr Attr kNormalization[] = {flag("center"), number("eps")};

constexpr OpRow of_each_row(std::string_view doc, std::uint8_t count, Infer infer, Rule rule,
                            Gradient gradient, Evaluate evaluate, Decompose decompose) {
  return {.doc = doc,
          .operands = operands(count),
          .attrs = none,
          .infer = infer,
          .rule = rule,
          .spreads = Spreads::later,
          .resized = none,
          .pads = Pads::yes,
          .linear = none,
          .gradient = gradient,
          .evaluate = evaluate,
          .decompose = decompose,
          .cost = Cost::How::decomposition,
          .traits = Traits{.rounds_once = true}};
}

constexpr OpRow with(Attrs attrs, OpRow row) {
  row.attrs = attrs;
  return row;
}

}  // namespace

constexpr OpRow rows::softmax = of_each_row(
    "e^x / sum of e^x along the last dim.", 1, of_rows, "d* c -> d* c need_replication={c}",
    of_result<OpKind::softmax_grad>, softmax_elements, softmax_primitives);
constexpr OpRow rows::softmax_grad =
    of_each_row("(result, its cotangent): the cotangent of the operand.", 2, of_equal_rows,
                "d* c, d* c -> d* c need_replication={c}", by_decomposition, softmax_grad_elements,
                softmax_grad_primitives);
constexpr OpRow rows::log_softmax =
    of_each_row("x - log of the sum of e^x along the last dim.", 1, of_rows,
                "d* c -> d* c need_replication={c}", of_result<OpKind::log_softmax_grad>,
                log_softmax_elements, log_softmax_primitives);
constexpr OpRow rows::log_softmax_grad =
    of_each_row("(result, its cotangent): the cotangent of the operand.", 2, of_equal_rows,
                "d* c, d* c -> d* c need_replication={c}", by_decomposition,
                log_softmax_grad_elements, log_softmax_grad_primitives);
constexpr OpRow rows::normalize = with(
    kNormalization, of_each_row("(x - mean) / sqrt(mean of (x - mean)^2 + eps) along the last dim. "
                                "With center = 0, no mean is subtracted.",
                                1, normalized_type, "d* c -> d* c need_replication={c}",
                                normalize_cotangent, normalize_elements, normalize_primitives));
constexpr OpRow rows::normalize_grad =
    with(kNormalization,
         of_each_row("(operand, the result's cotangent): the cotangent of the operand.", 2,
                     normalized_grad_type, "d* c, d* c -> d* c need_replication={c}",
                     by_decomposition, normalize_grad_elements, normalize_grad_primitives));
constexpr OpRow rows::cross_entropy = of_each_row(
    "(x[.., C], labels i32[..]): for each row, the log of the sum of e^x, minus x at the label; 0 "
    "if the label isn't in 0..C-1.",
    2, losses, "d* c, d* -> d*", cross_entropy_cotangent, cross_entropy_elements,
    cross_entropy_primitives);
constexpr OpRow rows::cross_entropy_grad =
    of_each_row("(x, labels, the result's cotangent): the cotangent of x.", 3, losses_grad,
                "d* c, d*, d* -> d* c need_replication={c}", by_decomposition,
                cross_entropy_grad_elements, cross_entropy_grad_primitives);

ValueId softmax_as_primitives(Builder& builder, ValueId x) {
  return softmax_primitives(builder, std::span(&x, 1), {});
}

ValueId softmax_grad_as_primitives(Builder& builder, ValueId y, ValueId g) {
  Rows r(builder, y);
  return r.mul(y, r.sub(g, r.spread(r.reduce(ReduceKind::add, r.mul(y, g)))));
}

Elements softmax_of(std::span<const double> x) {
  Elements result = log_softmax_row(x);
  for (double& element : result) element = std::exp(element);
  return result;
}

Elements softmax_grad_of(std::span<const double> y, std::span<const double> g) {
  const double along = dot(y, g);
  Elements result;
  for (std::size_t i = 0; i < y.size(); ++i) result.push_back(y[i] * (g[i] - along));
  return result;
}

}  // namespace weft
