/// Defines the elementwise ops. unary() and binary() fill in the fields that all their rows share.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using infer::reject;

// The following functions infer the type of an op's result.

TensorType floating(const OpSignature& op) {
  if (!is_floating(op.operands[0].dtype)) {
    reject(op, "needs a floating dtype; cast the operand first");
  }
  return op.operands[0];
}

TensorType finiteness(const OpSignature& op) { return {DType::pred, floating(op).shape}; }

TensorType converted(const OpSignature& op) {
  if (op.result.shape != op.operands[0].shape) {
    reject(op, "result {} has another shape", op.result.to_string());
  }
  return op.result;
}

TensorType number(const OpSignature& op) {
  if (op.operands[0].dtype == DType::pred) {
    reject(op, "pred has no arithmetic; convert it first");
  }
  return op.operands[0];
}

TensorType arithmetic(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  return number(op);
}

TensorType logical(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  if (op.operands[0].dtype != DType::pred) reject(op, "needs pred operands; compare first");
  return op.operands[0];
}

TensorType negated_pred(const OpSignature& op) {
  if (op.operands[0].dtype != DType::pred) reject(op, "needs a pred operand; compare first");
  return op.operands[0];
}

TensorType both_floating(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  return floating(op);
}

TensorType compared(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  return {DType::pred, op.operands[0].shape};
}

TensorType selected(const OpSignature& op) {
  infer::expect_equal_operands(op, 1);
  const TensorType& predicate = op.operands[0];
  if (predicate.dtype != DType::pred || predicate.shape != op.operands[1].shape) {
    reject(op, "the first operand must be {}",
           TensorType{DType::pred, op.operands[1].shape}.to_string());
  }
  return op.operands[1];
}

// The following functions append the gradients of ops.

/// The values in the formula of a gradient: an operand x, the result y and the result's cotangent
/// g. The member functions are arithmetic on values of x's type.
class Formula {
 public:
  Formula(Builder& builder, const ForwardOp& op, std::size_t index, ValueId cotangent)
      : x(op.operands[index]),
        y(op.result),
        g(cotangent),
        builder_(builder),
        type_(builder.type(x)) {}

  const ValueId x;  ///< the operand whose cotangent is computed
  const ValueId y;  ///< the op's result
  const ValueId g;

  ValueId number(double value) { return builder_.constant(value, type_); }
  ValueId neg(ValueId a) { return unary(OpKind::negate, a); }
  ValueId add(ValueId a, ValueId b) { return builder_.binary(OpKind::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return builder_.binary(OpKind::subtract, a, b); }
  ValueId mul(ValueId a, ValueId b) { return builder_.binary(OpKind::multiply, a, b); }
  ValueId div(ValueId a, ValueId b) { return builder_.binary(OpKind::divide, a, b); }
  ValueId pow(ValueId a, ValueId b) { return builder_.binary(OpKind::power, a, b); }
  ValueId unary(OpKind kind, ValueId a) { return builder_.unary(kind, a); }
  /// Returns `then` where a compares with b as `direction` says, and `otherwise` elsewhere.
  ValueId where(CompareDirection direction, ValueId a, ValueId b, ValueId then, ValueId otherwise) {
    return builder_.select(builder_.compare(direction, a, b), then, otherwise);
  }

 private:
  Builder& builder_;
  TensorType type_;
};

/// Makes a gradient from a formula of one operand.
template <ValueId (*kFormula)(Formula&)>
ValueId by(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  Formula f(builder, op, index, g);
  return kFormula(f);
}
/// Makes a gradient from two formulas, one for each operand.
template <ValueId (*kFirst)(Formula&, ValueId other), ValueId (*kSecond)(Formula&, ValueId other)>
ValueId by(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  Formula f(builder, op, index, g);
  return index == 0 ? kFirst(f, op.operands[1]) : kSecond(f, op.operands[0]);
}

ValueId negated(Formula& f) { return f.neg(f.g); }
ValueId by_sign(Formula& f) { return f.mul(f.g, f.unary(OpKind::sign, f.x)); }
ValueId by_result(Formula& f) { return f.mul(f.g, f.y); }
ValueId over_operand(Formula& f) { return f.div(f.g, f.x); }
ValueId tanh_slope(Formula& f) { return f.mul(f.g, f.sub(f.number(1), f.mul(f.y, f.y))); }
ValueId by_cosine(Formula& f) { return f.mul(f.g, f.unary(OpKind::cosine, f.x)); }
ValueId by_minus_sine(Formula& f) { return f.mul(f.g, f.neg(f.unary(OpKind::sine, f.x))); }
ValueId logistic_slope(Formula& f) { return f.mul(f.g, f.mul(f.y, f.sub(f.number(1), f.y))); }
ValueId sqrt_slope(Formula& f) { return f.div(f.mul(f.g, f.number(0.5)), f.y); }
ValueId rsqrt_slope(Formula& f) {
  return f.mul(f.mul(f.g, f.number(-0.5)), f.mul(f.y, f.mul(f.y, f.y)));
}
ValueId converted_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.convert(g, builder.type(op.operands[0]).dtype);
}

ValueId passed(Formula& f, ValueId) { return f.g; }
ValueId passed_negated(Formula& f, ValueId) { return f.neg(f.g); }
ValueId by_other(Formula& f, ValueId other) { return f.mul(f.g, other); }
ValueId over_other(Formula& f, ValueId other) { return f.div(f.g, other); }
ValueId quotient_slope(Formula& f, ValueId) { return f.neg(f.div(f.mul(f.g, f.y), f.x)); }

/// Gives g to the operand that is the result, or half of g to each if both are equal. If an operand
/// is NaN, no comparison holds, and both operands get all of g, as in torch.
template <CompareDirection kLoses>
ValueId to_the_winner(Formula& f, ValueId other) {
  const ValueId share = f.where(CompareDirection::eq, f.x, other, f.mul(f.g, f.number(0.5)), f.g);
  return f.where(kLoses, f.x, other, f.number(0), share);
}

ValueId log_plus_one_slope(Formula& f) { return f.div(f.g, f.add(f.x, f.number(1))); }
ValueId exponential_minus_one_slope(Formula& f) { return f.mul(f.g, f.add(f.y, f.number(1))); }
ValueId erf_slope(Formula& f) {
  const ValueId power = f.unary(OpKind::exponential, f.neg(f.mul(f.x, f.x)));
  return f.mul(f.g, f.mul(f.number(2 * std::numbers::inv_sqrtpi), power));
}
ValueId tan_slope(Formula& f) { return f.mul(f.g, f.add(f.number(1), f.mul(f.y, f.y))); }

/// Uses y = a - b trunc(a / b), whose derivative with respect to b is -trunc(a / b) = (y - a) / b.
ValueId remainder_by_divisor(Formula& f, ValueId a) {
  return f.mul(f.g, f.div(f.sub(f.y, a), f.x));
}
/// Returns g other / (x^2 + other^2), or 0 at the origin, where there is no angle.
ValueId atan2_by_first(Formula& f, ValueId other) {
  const ValueId square = f.add(f.mul(f.x, f.x), f.mul(other, other));
  const ValueId divisor = f.where(CompareDirection::eq, square, f.number(0), f.number(1), square);
  return f.div(f.mul(f.g, other), divisor);
}
ValueId atan2_by_second(Formula& f, ValueId other) { return f.neg(atan2_by_first(f, other)); }

/// The derivative of y = a^b with respect to a has the limit 0 at b = 0. The derivative with
/// respect to b has the limit 0 at a = 0 if b >= 0. The plain formulas would give 0 * inf there.
ValueId power_by_base(Formula& f, ValueId exponent) {
  const ValueId zero = f.number(0);
  const ValueId slope = f.mul(exponent, f.pow(f.x, f.sub(exponent, f.number(1))));
  return f.mul(f.g, f.where(CompareDirection::eq, exponent, zero, zero, slope));
}
ValueId power_by_exponent(Formula& f, ValueId base) {
  const ValueId zero = f.number(0);
  const ValueId slope = f.mul(f.y, f.unary(OpKind::log, base));
  const ValueId at_zero = f.where(CompareDirection::ge, f.x, zero, zero, slope);
  return f.mul(f.g, f.where(CompareDirection::eq, base, zero, at_zero, slope));
}

ValueId selected_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  WEFT_CHECK(index > 0, index);
  const ValueId zero = builder.constant(0, builder.type(g));
  return index == 1 ? builder.select(op.operands[0], g, zero)
                    : builder.select(op.operands[0], zero, g);
}

Elements converted_elements(const Evaluation& e) {
  Elements result = e.operand(0);
  for (double& element : result) element = to_dtype(e.type().dtype, element);
  return result;
}

Elements compared_elements(const Evaluation& e) {
  const auto direction = static_cast<CompareDirection>(e.attrs()[0]);
  Elements result;
  for (std::size_t i = 0; i < e.operand(0).size(); ++i) {
    result.push_back(holds(direction, e.operand(0)[i], e.operand(1)[i]) ? 1 : 0);
  }
  return result;
}

/// Computes quotients or remainders. Division of an integer by 0 gives the same result as in the
/// kernels.
template <bool kQuotients>
Elements divided_elements(const Evaluation& e) {
  const bool is_integer = !is_floating(e.type().dtype);
  Elements result = e.operand(0);
  for (std::size_t i = 0; i < result.size(); ++i) {
    double& a = result[i];
    const double b = e.operand(1)[i];
    if (b != 0 || !is_integer) a = kQuotients ? a / b : std::fmod(a, b);
    if (b == 0 && is_integer && kQuotients) a = -1;
    if (is_integer) a = std::trunc(a);
  }
  return result;
}

Elements selected_elements(const Evaluation& e) {
  Elements result;
  for (std::size_t i = 0; i < e.operand(0).size(); ++i) {
    result.push_back(e.operand(e.operand(0)[i] != 0 ? 1 : 2)[i]);
  }
  return result;
}

constexpr OpRow unary(std::string_view doc, Infer infer, Work work, double (*value)(double),
                      Gradient gradient) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = none,
          .infer = infer,
          .rule = Rule("d* -> d*"),
          .spreads = Spreads::first,
          .resized = none,
          .pads = Pads::yes,
          .linear = none,
          .gradient = gradient,
          .evaluate = Evaluate(value),
          .decompose = none,
          .cost = work,
          .traits = Traits{.elementwise = true, .near = true}};
}

constexpr OpRow binary(std::string_view doc, Infer infer, Work work,
                       double (*value)(double, double), Gradient gradient) {
  OpRow row = unary(doc, infer, work, nullptr, gradient);
  row.operands = operands(2);
  row.rule = Rule("d*, d* -> d*");
  row.evaluate = Evaluate(value);
  return row;
}

constexpr OpRow computed(Elements (*elements)(const Evaluation&), OpRow row) {
  row.evaluate = elements;
  return row;
}

constexpr OpRow linear_in(Linearity linear, OpRow row) {
  row.linear = linear;
  return row;
}

constexpr Linearity kNegated{.in = Linearity::In::first, .scaling = Scaling::negates};
constexpr Linearity kFirstIfFloating{.in = Linearity::In::first,
                                     .holds = [](Words, DType dtype) { return is_floating(dtype); },
                                     .scaling = Scaling::divides};
constexpr Linearity kOne{.in = Linearity::In::one, .scaling = Scaling::multiplies};
constexpr Linearity kAllTogether{.in = Linearity::In::all_together};
constexpr Attr kDirection[] = {{.name = "direction", .form = Form::direction}};

}  // namespace

constexpr OpRow rows::negate =
    linear_in(kNegated, unary(
                            "-x", number, Work::simple, [](double x) { return -x; }, by<negated>));
constexpr OpRow rows::sign =
    unary("1 or -1; x itself if it is 0 or NaN", number, Work::simple,
          [](double x) { return x == 0 || x != x ? x : std::copysign(1, x); }, {});
constexpr OpRow rows::abs = unary(
    "|x|", number, Work::simple, [](double x) { return std::abs(x); }, by<by_sign>);
constexpr OpRow rows::exponential = unary(
    "e^x", floating, Work::function, [](double x) { return std::exp(x); }, by<by_result>);
constexpr OpRow rows::log = unary(
    "ln x", floating, Work::function, [](double x) { return std::log(x); }, by<over_operand>);
constexpr OpRow rows::tanh = unary(
    "tanh x", floating, Work::function, [](double x) { return std::tanh(x); }, by<tanh_slope>);
constexpr OpRow rows::logistic = unary(
    "1 / (1 + e^-x)", floating, Work::function, [](double x) { return 1 / (1 + std::exp(-x)); },
    by<logistic_slope>);
constexpr OpRow rows::sqrt = unary(
    "x^(1/2)", floating, Work::division, [](double x) { return std::sqrt(x); }, by<sqrt_slope>);
constexpr OpRow rows::rsqrt = unary(
    "x^(-1/2)", floating, Work::division, [](double x) { return 1 / std::sqrt(x); },
    by<rsqrt_slope>);
constexpr OpRow rows::sine = unary(
    "sin x", floating, Work::long_function, [](double x) { return std::sin(x); }, by<by_cosine>);
constexpr OpRow rows::cosine = unary(
    "cos x", floating, Work::long_function, [](double x) { return std::cos(x); },
    by<by_minus_sine>);
constexpr OpRow rows::softplus = unary(
    "ln(1 + e^x)", floating, Work::function,
    [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); },
    by<[](Formula& f) { return f.mul(f.g, f.unary(OpKind::logistic, f.x)); }>);
constexpr OpRow rows::floor =
    unary("x rounded down.", floating, Work::simple, [](double x) { return std::floor(x); }, {});
constexpr OpRow rows::ceil =
    unary("x rounded up.", floating, Work::simple, [](double x) { return std::ceil(x); }, {});
constexpr OpRow rows::round_nearest_even = unary("x rounded, ties to even.", floating, Work::simple,
                                                 [](double x) { return std::nearbyint(x); }, {});
constexpr OpRow rows::log_plus_one = unary(
    "ln(1 + x)", floating, Work::function, [](double x) { return std::log1p(x); },
    by<log_plus_one_slope>);
constexpr OpRow rows::exponential_minus_one = unary(
    "e^x - 1", floating, Work::function, [](double x) { return std::expm1(x); },
    by<exponential_minus_one_slope>);
constexpr OpRow rows::erf = unary(
    "The error function of x.", floating, Work::function, [](double x) { return std::erf(x); },
    by<erf_slope>);
constexpr OpRow rows::tan = unary(
    "tan x", floating, Work::long_function, [](double x) { return std::tan(x); }, by<tan_slope>);
constexpr OpRow rows::is_finite =
    unary("A pred: true if x is neither infinite nor NaN.", finiteness, Work::simple,
          [](double x) -> double { return std::isfinite(x); }, {});
constexpr OpRow rows::convert = [] {
  OpRow row = unary("x in the result's dtype.", converted, Work::simple, nullptr, converted_back);
  row.cost = Cost(Cost::How::nothing, Work::simple);
  row.traits = Traits{.elementwise = true, .near = true, .picks = Picks::all};
  return computed(converted_elements, row);
}();
constexpr OpRow rows::add =
    linear_in(kAllTogether, binary(
                                "a + b", arithmetic, Work::simple,
                                [](double a, double b) { return a + b; }, by<passed, passed>));
constexpr OpRow rows::subtract = linear_in(
    kAllTogether, binary(
                      "a - b", arithmetic, Work::simple, [](double a, double b) { return a - b; },
                      by<passed, passed_negated>));
constexpr OpRow rows::multiply =
    linear_in(kOne, binary(
                        "a b", arithmetic, Work::simple, [](double a, double b) { return a * b; },
                        by<by_other, by_other>));
constexpr OpRow rows::divide = linear_in(
    kFirstIfFloating,
    computed(divided_elements<true>,
             binary("a / b. Integer quotients are truncated, and are -1 if b = 0", arithmetic,
                    Work::division, nullptr, by<over_other, quotient_slope>)));
constexpr OpRow rows::maximum = binary(
    "The larger of a and b; NaN if one of them is NaN.", arithmetic, Work::simple,
    [](double a, double b) { return combine(ReduceKind::max, a, b); },
    by<to_the_winner<CompareDirection::lt>, to_the_winner<CompareDirection::lt>>);
constexpr OpRow rows::minimum = binary(
    "The smaller of a and b; NaN if one of them is NaN.", arithmetic, Work::simple,
    [](double a, double b) { return combine(ReduceKind::min, a, b); },
    by<to_the_winner<CompareDirection::gt>, to_the_winner<CompareDirection::gt>>);
constexpr OpRow rows::power =
    linear_in({.scaling = Scaling::raises}, binary(
                                                "a^b", arithmetic, Work::long_function,
                                                [](double a, double b) { return std::pow(a, b); },
                                                by<power_by_base, power_by_exponent>));
constexpr OpRow rows::logical_and =
    binary("a and b, for pred", logical, Work::simple,
           [](double a, double b) -> double { return a != 0 && b != 0 ? 1 : 0; }, {});
constexpr OpRow rows::logical_or =
    binary("a or b", logical, Work::simple,
           [](double a, double b) -> double { return a != 0 || b != 0; }, {});
constexpr OpRow rows::logical_xor =
    binary("Either a or b but not both, for pred", logical, Work::simple,
           [](double a, double b) -> double { return (a != 0) != (b != 0) ? 1 : 0; }, {});
constexpr OpRow rows::logical_not = unary("not x", negated_pred, Work::simple,
                                          [](double x) -> double { return x == 0 ? 1 : 0; }, {});
constexpr OpRow rows::remainder =
    computed(divided_elements<false>,
             binary("a % b as in C, with the sign of a. For integers with b = 0 it is a",
                    arithmetic, Work::long_function, nullptr, by<passed, remainder_by_divisor>));
constexpr OpRow rows::atan2 = binary(
    "The angle of the point (b, a), from -pi to pi.", both_floating, Work::long_function,
    [](double a, double b) { return std::atan2(a, b); }, by<atan2_by_first, atan2_by_second>);
constexpr OpRow rows::compare = [] {
  OpRow row = binary("A pred: true if `a direction b` holds.", compared, Work::simple, nullptr, {});
  row.attrs = Attrs(kDirection);
  return computed(compared_elements, row);
}();
constexpr OpRow rows::select = [] {
  OpRow row = unary("on_true where the pred holds, on_false elsewhere.", selected, Work::simple,
                    nullptr, selected_cotangent);
  row.operands = operands(3);
  row.rule = Rule("d*, d*, d* -> d*");
  return computed(selected_elements, row);
}();

}  // namespace weft
