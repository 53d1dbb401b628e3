#include <weft/ops/elementwise.hpp>

#include <cmath>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

Tensor unary(OpKind kind, const Operand& x) {
  Call call(to_string(kind), x.loc());
  return call.result(call->unary(kind, call.value(x)));
}

/// Returns x, converted to f32 if it has an integer dtype, as torch does for functions of real
/// numbers.
Tensor real(Call& call, const Operand& x) {
  return is_floating(call.type(x).dtype) ? x.tensor() : cast(x, DType::f32);
}

/// Applies a unary op to real(x). `name` is the name of the API's function if it differs from the
/// op's.
Tensor real_unary(OpKind kind, const Operand& x, std::string_view name = {}) {
  Call call(name.empty() ? to_string(kind) : name, x.loc());
  return call.result(call->unary(kind, call.value(real(call, x))));
}

/// Applies a rounding op. If x has an integer dtype, returns x itself.
Tensor rounded(std::string_view name, OpKind kind, const Operand& x) {
  Call call(name, x.loc());
  if (!is_floating(call.type(x).dtype)) return x.tensor();
  return call.result(call->unary(kind, call.value(x)));
}

struct Operands {
  ValueId a;
  ValueId b;
};

/// Converts both operands to their common dtype and shape.
Operands operands(Call& call, const Operand& a, const Operand& b) {
  if (!a.is_number() && !b.is_number() && call.type(a) == call.type(b)) {
    const ValueId left = call.value(a);
    return {left, call.value(b)};
  }
  if (a.is_number() && b.is_number()) call.refuse("needs a tensor among its operands");
  const DType dtype = call.common_dtype({&a, &b});
  const Shape shape = call.common_shape({&a, &b});
  const ValueId left = call.value(a, dtype, shape);
  return {left, call.value(b, dtype, shape)};
}

Tensor binary(OpKind kind, const Operand& a, const Operand& b) {
  Call call(to_string(kind), a.loc());
  const Operands values = operands(call, a, b);
  return call.result(call->binary(kind, values.a, values.b));
}

/// Returns x itself if it has dtype pred; otherwise returns for each element whether it isn't 0.
Tensor truth(const Operand& x) {
  if (!x.is_number() && x.tensor().defined() && x.tensor().type().dtype == DType::pred) {
    return x.tensor();
  }
  return not_equal(x, 0.0);
}

Tensor logical(OpKind kind, const Operand& a, const Operand& b) {
  Call call(to_string(kind), a.loc());
  return binary(kind, Operand(truth(a), a.loc()), Operand(truth(b), b.loc()));
}

/// Applies a binary op of real numbers; integers are converted to f32.
Tensor real_binary(OpKind kind, const Operand& a, const Operand& b) {
  Call call(to_string(kind), a.loc());
  if (is_floating(call.common_dtype({&a, &b}))) return binary(kind, a, b);
  const auto promoted = [&](const Operand& x) {
    return x.is_number() ? full({}, x.number(), DType::f32, x.loc()) : real(call, x);
  };
  return binary(kind, promoted(a), promoted(b));
}

/// Returns whether the quotient rounded down is one less than the truncated quotient: whether the
/// remainder `rest` isn't 0 and doesn't have the sign of b.
Tensor is_across(const Tensor& rest, const Operand& b) {
  if (b.is_number()) return b.number() < 0 ? greater(rest, 0.0) : less(rest, 0.0);
  const Tensor differs = not_equal(less(rest, 0.0), less(b, 0.0));
  return logical_and(not_equal(rest, 0.0), differs);
}

/// Returns a / b rounded down, for floating numbers. `rest` is the remainder of the truncated
/// quotient, so a - rest is a multiple of b except for rounding. A result of 0 has the sign of a /
/// b, and a / 0 follows IEEE 754.
Tensor floored_quotient(const Operand& a, const Operand& b, const Tensor& rest) {
  const Tensor ratio = a / b;
  const Tensor whole = round((a - rest) / b);
  const Tensor down = where(is_across(rest, b), whole - 1, whole);
  const Tensor quotient = where(equal(down, 0.0), ratio * 0.0, down);
  if (b.is_number()) return b.number() == 0 ? ratio : quotient;
  return where(equal(b, 0.0), ratio, quotient);
}

Tensor compare(std::string_view name, CompareDirection direction, const Operand& a,
               const Operand& b) {
  Call call(name, a.loc());
  const Operands values = operands(call, a, b);
  return call.result(call->compare(direction, values.a, values.b));
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, std::source_location loc) {
  Call call("full", loc);
  return call.result(call->constant(value, {dtype, shape}));
}

Tensor iota(const Shape& shape, int dim, DType dtype, std::source_location loc) {
  Call call("iota", loc);
  return call.result(call->iota({dtype, shape}, call.dim_of(dim, shape.size())));
}

Tensor operator+(Operand a, Operand b) { return binary(OpKind::add, a, b); }
Tensor operator-(Operand a, Operand b) { return binary(OpKind::subtract, a, b); }
Tensor operator*(Operand a, Operand b) { return binary(OpKind::multiply, a, b); }
Tensor operator/(Operand a, Operand b) { return real_binary(OpKind::divide, a, b); }
Tensor operator-(Operand x) { return unary(OpKind::negate, x); }
Tensor maximum(Operand a, Operand b) { return binary(OpKind::maximum, a, b); }
Tensor minimum(Operand a, Operand b) { return binary(OpKind::minimum, a, b); }
Tensor pow(Operand a, Operand b) {
  Call call("pow", a.loc());
  return binary(OpKind::power, a, b);
}
Tensor equal(Operand a, Operand b) { return compare("equal", CompareDirection::eq, a, b); }
Tensor not_equal(Operand a, Operand b) { return compare("not_equal", CompareDirection::ne, a, b); }
Tensor less(Operand a, Operand b) { return compare("less", CompareDirection::lt, a, b); }
Tensor less_equal(Operand a, Operand b) {
  return compare("less_equal", CompareDirection::le, a, b);
}
Tensor greater(Operand a, Operand b) { return compare("greater", CompareDirection::gt, a, b); }
Tensor greater_equal(Operand a, Operand b) {
  return compare("greater_equal", CompareDirection::ge, a, b);
}

Tensor operator==(Operand a, Operand b) { return equal(a, b); }
Tensor operator!=(Operand a, Operand b) { return not_equal(a, b); }
Tensor operator<(Operand a, Operand b) { return less(a, b); }
Tensor operator<=(Operand a, Operand b) { return less_equal(a, b); }
Tensor operator>(Operand a, Operand b) { return greater(a, b); }
Tensor operator>=(Operand a, Operand b) { return greater_equal(a, b); }

Tensor atan2(Operand y, Operand x) { return real_binary(OpKind::atan2, y, x); }

Tensor fmod(Operand a, Operand b) {
  Call call("fmod", a.loc());
  return binary(OpKind::remainder, a, b);
}

Tensor remainder(Operand a, Operand b) {
  Call call("remainder", a.loc());
  const Tensor rest = fmod(a, b);
  return where(is_across(rest, b), rest + b, rest);
}

Tensor floor_divide(Operand a, Operand b) {
  Call call("floor_divide", a.loc());
  const DType dtype = call.common_dtype({&a, &b});
  if (is_half(dtype)) {
    const auto wide = [](const Operand& x) { return cast(x, DType::f32); };
    return cast(floor_divide(a.is_number() ? a : Operand(wide(a), a.loc()),
                             b.is_number() ? b : Operand(wide(b), b.loc())),
                dtype);
  }
  const Tensor rest = fmod(a, b);
  if (is_floating(dtype)) return stop_gradient(floored_quotient(a, b, rest));
  // None of these steps overflows, except that the least number / -1 wraps around.
  const Tensor quotient = binary(OpKind::divide, a, b);
  return where(is_across(rest, b), quotient - 1, quotient);
}

Tensor logical_and(Operand a, Operand b) { return logical(OpKind::logical_and, a, b); }
Tensor logical_or(Operand a, Operand b) { return logical(OpKind::logical_or, a, b); }
Tensor logical_xor(Operand a, Operand b) { return logical(OpKind::logical_xor, a, b); }
Tensor logical_not(Operand x) {
  Call call("logical_not", x.loc());
  return unary(OpKind::logical_not, Operand(truth(x), x.loc()));
}

Tensor where(Operand condition, Operand on_true, Operand on_false) {
  Call call("where", condition.loc());
  if (!condition.is_number() && call.type(condition).dtype != DType::pred) {
    call.refuse("the condition {} isn't pred; compare it, for example by not_equal(condition, 0.0)",
                call.type(condition).to_string());
  }
  const DType dtype = call.common_dtype({&on_true, &on_false});
  const Shape shape = call.common_shape({&condition, &on_true, &on_false});
  const ValueId predicate = call.spread(call.value(condition), shape);
  const ValueId left = call.value(on_true, dtype, shape);
  return call.result(call->select(predicate, left, call.value(on_false, dtype, shape)));
}

Tensor exp(Operand x) { return real_unary(OpKind::exponential, x, "exp"); }
Tensor log(Operand x) { return real_unary(OpKind::log, x); }
Tensor sqrt(Operand x) { return real_unary(OpKind::sqrt, x); }
Tensor rsqrt(Operand x) { return real_unary(OpKind::rsqrt, x); }
Tensor tanh(Operand x) { return real_unary(OpKind::tanh, x); }
Tensor sigmoid(Operand x) { return real_unary(OpKind::logistic, x, "sigmoid"); }
Tensor softplus(Operand x) { return real_unary(OpKind::softplus, x); }
Tensor sin(Operand x) { return real_unary(OpKind::sine, x, "sin"); }
Tensor cos(Operand x) { return real_unary(OpKind::cosine, x, "cos"); }
Tensor tan(Operand x) { return real_unary(OpKind::tan, x); }
Tensor log1p(Operand x) {
  Call call("log1p", x.loc());
  return real_unary(OpKind::log_plus_one, call.widens(x) ? Operand(call.widened(x), x.loc()) : x);
}
Tensor expm1(Operand x) {
  Call call("expm1", x.loc());
  return real_unary(OpKind::exponential_minus_one,
                    call.widens(x) ? Operand(call.widened(x), x.loc()) : x);
}
Tensor erf(Operand x) { return real_unary(OpKind::erf, x); }
Tensor floor(Operand x) { return rounded("floor", OpKind::floor, x); }
Tensor ceil(Operand x) { return rounded("ceil", OpKind::ceil, x); }
Tensor round(Operand x) { return rounded("round", OpKind::round_nearest_even, x); }
Tensor sign(Operand x) { return unary(OpKind::sign, x); }
Tensor abs(Operand x) { return unary(OpKind::abs, x); }
Tensor square(Operand x) {
  Call call("square", x.loc());
  return x * x;
}
Tensor clone(Operand x) {
  Call call("clone", x.loc());
  return call.result(call->copy(call.value(x)));
}
Tensor stop_gradient(Operand x) { return unary(OpKind::stop_gradient, x); }

Tensor clamp(Operand x, std::optional<double> min, std::optional<double> max) {
  Call call("clamp", x.loc());
  if (!min && !max) call.refuse("needs min, max or both");
  if (std::isnan(min.value_or(0)) || std::isnan(max.value_or(0))) {
    call.refuse("min = {}, max = {}: expected numbers; leave out a bound that doesn't apply",
                min.value_or(0), max.value_or(0));
  }
  // As in torch, an x that equals a bound gives the bound itself, so that its gradient is 0.
  if (!min) return where(greater_equal(x, *max), *max, x);
  const Tensor raised = where(less_equal(x, *min), *min, x);
  return max ? where(greater_equal(raised, *max), *max, raised) : raised;
}

Tensor clamp(Operand x, const Tensor& min, const Tensor& max) {
  Call call("clamp", x.loc());
  if (!min.defined() && !max.defined()) call.refuse("needs min, max or both");
  const Tensor raised = min.defined() ? maximum(x, min) : x.tensor();
  return max.defined() ? minimum(raised, max) : raised;
}

Tensor masked_fill(Operand x, Operand mask, Operand value) {
  Call call("masked_fill", x.loc());
  return where(mask, value, x);
}

Tensor isfinite(Operand x) {
  Call call("isfinite", x.loc());
  const TensorType& type = call.type(x);
  if (!is_floating(type.dtype)) return full(type.shape, 1, DType::pred, x.loc());
  return call.result(call->unary(OpKind::is_finite, call.value(x)));
}

Tensor relu(Operand x) {
  Call call("relu", x.loc());
  return where(less_equal(x, 0.0), 0.0, x);  // compared in this direction, a NaN stays NaN
}

Tensor cast(Operand x, DType dtype) {
  Call call("cast", x.loc());
  return call.result(call->convert(call.value(x), dtype));
}

}  // namespace weft
