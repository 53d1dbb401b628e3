// Lowers elementwise ops.

#include <array>
#include <limits>

#include "spmd/ops/elements.hpp"
#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

/// Lowers to StableHLO's op of the same name.
HloValue same_name(const HloOp& op) {
  return op.write().op(to_string(op.kind()), op.operands, op.type);
}

/// Lowers an op on pred. StableHLO uses the names of the ops on bits: weft's name without the
/// prefix.
HloValue logical(const HloOp& op) {
  constexpr std::string_view kPrefix = "logical_";
  return op.write().op(to_string(op.kind()).substr(kPrefix.size()), op.operands, op.type);
}

/// Lowers sign. StableHLO's sign refuses unsigned integers, for which the result is x != 0.
HloValue lower_sign(const HloOp& op) {
  if (is_floating(op.dtype()) || is_signed_integer(op.dtype())) return same_name(op);
  HloWriter& w = op.write();
  return w.convert(w.compare("NE", {op.operand(0), op.zeros()}), op.type.element);
}

HloValue lower_abs(const HloOp& op) {
  const bool is_signed = is_floating(op.dtype()) || is_signed_integer(op.dtype());
  return is_signed ? same_name(op) : op.operand(0);
}

/// Lowers softplus to max(x, 0) + ln(1 + e^-|x|).
HloValue lower_softplus(const HloOp& op) {
  HloWriter& w = op.write();
  const HloValue power = w.unary("exponential", w.unary("negate", w.unary("abs", op.operand(0))));
  return w.binary(
      "add", {w.binary("maximum", {op.operand(0), op.zeros()}), w.unary("log_plus_one", power)});
}

HloValue lower_erf(const HloOp& op) { return op.write().op("chlo.erf", op.operands, op.type); }

/// Lowers convert. Between integers, StableHLO's convert drops the upper bits, while weft
/// saturates.
HloValue lower_convert(const HloOp& op) {
  HloWriter& w = op.write();
  HloValue x = op.operand(0);
  const DType from = op.operand_dtype(0);
  const DType to = op.dtype();
  const auto is_integer = [](DType dtype) { return !is_floating(dtype) && dtype != DType::pred; };
  if (is_integer(from) && is_integer(to)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double least = to_dtype(to, -kInfinity);
    const double most = to_dtype(to, kInfinity);
    if (to_dtype(from, -kInfinity) < least) {
      x = w.binary("maximum", {x, w.splat(x.type, least)});
    }
    if (to_dtype(from, kInfinity) > most) x = w.binary("minimum", {x, w.splat(x.type, most)});
  }
  return w.convert(x, op.type.element);
}

HloValue lower_compare(const HloOp& op) {
  constexpr std::array kDirections{"EQ", "NE", "LT", "LE", "GT", "GE"};
  return op.write().compare(kDirections[static_cast<std::size_t>(op.attrs()[0])],
                            {op.operand(0), op.operand(1)});
}

}  // namespace

constexpr Lowering lowerings::negate = same_name;
constexpr Lowering lowerings::sign = lower_sign;
constexpr Lowering lowerings::abs = lower_abs;
constexpr Lowering lowerings::exponential = same_name;
constexpr Lowering lowerings::log = same_name;
constexpr Lowering lowerings::tanh = same_name;
constexpr Lowering lowerings::logistic = same_name;
constexpr Lowering lowerings::sqrt = same_name;
constexpr Lowering lowerings::rsqrt = same_name;
constexpr Lowering lowerings::convert = lower_convert;
constexpr Lowering lowerings::sine = same_name;
constexpr Lowering lowerings::cosine = same_name;
constexpr Lowering lowerings::is_finite = same_name;
constexpr Lowering lowerings::softplus = lower_softplus;
constexpr Lowering lowerings::floor = same_name;
constexpr Lowering lowerings::ceil = same_name;
constexpr Lowering lowerings::round_nearest_even = same_name;
constexpr Lowering lowerings::log_plus_one = same_name;
constexpr Lowering lowerings::exponential_minus_one = same_name;
constexpr Lowering lowerings::erf = lower_erf;
constexpr Lowering lowerings::add = same_name;
constexpr Lowering lowerings::subtract = same_name;
constexpr Lowering lowerings::multiply = same_name;
constexpr Lowering lowerings::divide = same_name;
constexpr Lowering lowerings::maximum = same_name;
constexpr Lowering lowerings::minimum = same_name;
constexpr Lowering lowerings::power = same_name;
constexpr Lowering lowerings::compare = lower_compare;
constexpr Lowering lowerings::logical_and = logical;
constexpr Lowering lowerings::logical_or = logical;
constexpr Lowering lowerings::logical_xor = logical;
constexpr Lowering lowerings::logical_not = logical;
constexpr Lowering lowerings::remainder = same_name;
constexpr Lowering lowerings::atan2 = same_name;
constexpr Lowering lowerings::tan = same_name;
constexpr Lowering lowerings::select = same_name;

}  // namespace weft
