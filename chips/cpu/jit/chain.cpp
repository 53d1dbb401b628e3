#include "chips/cpu/jit/chain.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "chips/cpu/loops/math.hpp"

namespace weft::jit {
namespace {

/// The lanes of an op's result; std::nullopt if the op isn't compiled.
using Result = std::optional<Lane>;

constexpr std::uint32_t kSignBit = 0x80000000U;

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

Lane is_nan(Lane x) { return compared(x, x, not_equal); }
Lane with_other_sign(Lane x) { return Lane::make(NodeKind::bit_xor, x, Lane::of_bits(kSignBit)); }
Lane negated(Lane mask) { return Lane::unary(NodeKind::mask_not, mask); }

/// Rounds to the nearest bf16, ties to even.
Lane rounded_to_bf16(Lane x) {
  const Lane odd = and_bits(shifted(NodeKind::shift_right, x, 16), 1);
  const Lane rounded = add_int(Lane::make(NodeKind::int_add, x, odd), 0x7fff);
  return and_bits(blend(is_nan(x), or_bits(x, 0x400000), rounded), 0xffff0000U);
}

Lane sign(Lane x) {
  const Lane is_itself = Lane::make(NodeKind::mask_or, compared(x, Lane(0.0F), equal), is_nan(x));
  return blend(is_itself, x, with_sign_of(x, Lane(1.0F)));
}

/// Returns the minimum or maximum: NaN if a or b is NaN, and a if they are equal, because the
/// instruction min or max of (b, a) returns b only if it is smaller or larger than a.
Lane winner(NodeKind kind, Lane a, Lane b) {
  const Lane chosen = Lane::make(kind, b, a);
  const bool is_number = b.is_constant() && !std::isnan(std::bit_cast<float>(b.bits()));
  return is_number ? chosen : blend(is_nan(b), b, chosen);
}

Result real_unary(OpKind kind, Lane x) {
  using namespace kernels;
  switch (kind) {
    case OpKind::negate: return -x;
    case OpKind::sign: return jit::sign(x);
    case OpKind::abs: return magnitude(x);
    case OpKind::exponential: return exponential(x);
    case OpKind::log: return kernels::log(x);
    case OpKind::tanh: return kernels::tanh(x);
    case OpKind::logistic: return logistic(x);
    case OpKind::sqrt: return Lane::unary(NodeKind::square_root, x);
    case OpKind::rsqrt: return Lane(1.0F) / Lane::unary(NodeKind::square_root, x);
    case OpKind::softplus: return softplus(x);
    case OpKind::floor: return Lane::unary(NodeKind::round, x, 1);
    case OpKind::ceil: return Lane::unary(NodeKind::round, x, 2);
    case OpKind::round_nearest_even: return Lane::unary(NodeKind::round, x, 0);
    case OpKind::log_plus_one: return log_plus_one(x);
    case OpKind::exponential_minus_one: return exponential_minus_one(x);
    case OpKind::erf: return kernels::erf(x);
    default: return {};
  }
}

Result real_binary(OpKind kind, Lane a, Lane b) {
  switch (kind) {
    case OpKind::add: return a + b;
    case OpKind::subtract: return a - b;
    case OpKind::multiply: return a * b;
    case OpKind::divide: return a / b;
    case OpKind::maximum: return winner(NodeKind::max, a, b);
    case OpKind::minimum: return winner(NodeKind::min, a, b);
    default: return {};
  }
}

/// Returns the minimum or maximum of integers. u32 numbers are mapped to signed numbers in the same
/// order.
Lane extreme(NodeKind kind, Lane a, Lane b, DType dtype) {
  if (dtype == DType::i32) return Lane::make(kind, a, b);
  return with_other_sign(Lane::make(kind, with_other_sign(a), with_other_sign(b)));
}

Result integer_op(OpKind kind, DType dtype, Lane a, Lane b) {
  switch (kind) {
    case OpKind::add: return Lane::make(NodeKind::int_add, a, b);
    case OpKind::subtract: return Lane::make(NodeKind::int_subtract, a, b);
    case OpKind::multiply: return Lane::make(NodeKind::int_multiply, a, b);
    case OpKind::maximum: return extreme(NodeKind::int_max, a, b, dtype);
    case OpKind::minimum: return extreme(NodeKind::int_min, a, b, dtype);
    case OpKind::negate: return Lane::make(NodeKind::int_subtract, Lane::of_bits(0), a);
    case OpKind::divide:
      if (dtype != DType::u32 || !b.is_constant() || !std::has_single_bit(b.bits())) return {};
      return shifted(NodeKind::shift_right, a,
                     static_cast<std::uint32_t>(std::countr_zero(b.bits())));
    default: return {};
  }
}

Result mask_op(OpKind kind, Lane a, Lane b) {
  switch (kind) {
    case OpKind::logical_and: return Lane::make(NodeKind::mask_and, a, b);
    case OpKind::logical_or: return Lane::make(NodeKind::mask_or, a, b);
    case OpKind::logical_xor: return Lane::make(NodeKind::mask_xor, a, b);
    case OpKind::logical_not: return negated(a);
    default: return {};
  }
}

Result comparison(CompareDirection direction, DType dtype, Lane a, Lane b) {
  using enum CompareDirection;
  if (direction == gt || direction == ge) {
    return comparison(direction == gt ? lt : le, dtype, b, a);
  }
  if (is_real(dtype)) {
    return compared(a, b,
                    direction == eq   ? equal
                    : direction == ne ? not_equal
                    : direction == lt ? less
                                      : less_equal);
  }
  if (dtype == DType::pred) return {};
  if (direction == eq) return Lane::make(NodeKind::int_equal, a, b);
  if (direction == ne) return negated(Lane::make(NodeKind::int_equal, a, b));
  if (dtype == DType::u32) {
    a = with_other_sign(a);
    b = with_other_sign(b);
  }
  const auto greater = [](Lane x, Lane y) { return Lane::make(NodeKind::int_greater, x, y); };
  return direction == lt ? greater(b, a) : negated(greater(a, b));
}

Lane to_i32(Lane x) {
  using Limits = std::numeric_limits<std::int32_t>;
  const Lane large = compared(Lane(2147483648.0F), x, less_equal);
  const Lane saturated = blend(large, Lane::of_bits(static_cast<std::uint32_t>(Limits::max())),
                               Lane::unary(NodeKind::to_int, x));
  return blend(is_nan(x), Lane::of_bits(0), saturated);
}

/// Converts to f32. Returns nothing for dtypes that can't be converted.
Result to_real(DType from, Lane x) {
  switch (from) {
    case DType::f32:
    case DType::bf16: return x;
    case DType::i32: return Lane::unary(NodeKind::to_float, x);
    case DType::pred: return blend(x, Lane(1.0F), Lane(0.0F));
    case DType::u32: {  // the sum rounds once, because each half is exact
      const Lane upper = Lane::unary(NodeKind::to_float, shifted(NodeKind::shift_right, x, 16));
      return fused(upper, Lane(65536.0F), Lane::unary(NodeKind::to_float, and_bits(x, 0xffff)));
    }
    default: return {};
  }
}

Result conversion(DType from, DType to, Lane x) {
  if (from == to) return x;
  if (is_real(to)) return to_real(from, x);
  const Lane zero = Lane::of_bits(0);
  if (to == DType::pred) {
    if (is_real(from)) return compared(x, zero, not_equal);
    return negated(Lane::make(NodeKind::int_equal, x, zero));
  }
  if (from == DType::pred) return blend(x, Lane::of_bits(1), zero);
  if (to == DType::i32 && is_real(from)) return to_i32(x);
  if (to == DType::u32 && from == DType::i32) return Lane::make(NodeKind::int_max, x, zero);
  if (to == DType::i32 && from == DType::u32) {
    const auto top = static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
    return blend(Lane::make(NodeKind::int_greater, zero, x), Lane::of_bits(top), x);
  }
  return {};
}

Result chosen(DType dtype, Lane mask, Lane then, Lane otherwise) {
  if (dtype != DType::pred) return blend(mask, then, otherwise);
  const Lane difference = Lane::make(NodeKind::mask_xor, then, otherwise);
  return Lane::make(NodeKind::mask_xor, otherwise,
                    Lane::make(NodeKind::mask_and, mask, difference));
}

Result computed(const Program& program, OpId op, std::span<const Lane> x) {
  const OpKind kind = program.kind(op);
  const DType dtype = program.type(program.op_operands(op)[0]).dtype;
  const DType to = program.type(program.result(op)).dtype;
  const Lane second = x.size() > 1 ? x[1] : Lane();
  switch (kind) {
    case OpKind::convert: return conversion(dtype, to, x[0]);
    case OpKind::select: return chosen(to, x[0], x[1], x[2]);
    case OpKind::compare:
      return comparison(static_cast<CompareDirection>(program.op_attrs(op)[0]), dtype, x[0],
                        second);
    case OpKind::is_finite:
      if (!is_real(dtype)) return {};
      return compared(x[0] - x[0], Lane(0.0F), equal);
    default: break;
  }
  if (dtype == DType::pred) return mask_op(kind, x[0], second);
  if (!is_real(dtype)) return integer_op(kind, dtype, x[0], second);
  return x.size() == 1 ? real_unary(kind, x[0]) : real_binary(kind, x[0], second);
}

/// Returns whether the op's result for bf16 operands is always a bf16 number, so that it needs no
/// rounding.
bool is_exact(OpKind kind) {
  switch (kind) {
    case OpKind::negate:
    case OpKind::abs:
    case OpKind::sign:
    case OpKind::maximum:
    case OpKind::minimum:
    case OpKind::select: return true;
    default: return false;
  }
}

}  // namespace

bool has_lanes(DType dtype) {
  return is_real(dtype) || dtype == DType::i32 || dtype == DType::u32 || dtype == DType::pred;
}

Lane read(Graph& graph, DType dtype, Stream::Kind kind) {
  const bool changes = kind == Stream::Kind::dense || kind == Stream::Kind::row;
  const auto number = static_cast<std::uint32_t>(graph.streams.size());
  graph.streams.push_back({dtype, kind});
  const Lane lane(
      graph, graph.put({.kind = changes ? NodeKind::load : NodeKind::uniform, .bits = number}));
  if (dtype != DType::pred) return lane;
  return Lane::make(NodeKind::int_greater, lane, Lane::of_bits(0));
}

Lane read_sum(Graph& graph, DType dtype, std::size_t count) {
  Lane sum = read(graph, dtype, Stream::Kind::dense);
  for (std::size_t i = 1; i < count; ++i) sum = sum + read(graph, dtype, Stream::Kind::dense);
  return dtype == DType::bf16 ? rounded_to_bf16(sum) : sum;
}

Lane fill_of(Graph& graph, DType dtype, const std::byte* element) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, element, static_cast<std::size_t>(byte_size(dtype)));
  if (dtype == DType::bf16) bits <<= 16;
  const Lane lane(graph, graph.put({.kind = NodeKind::constant, .bits = bits}));
  return dtype == DType::pred ? Lane::make(NodeKind::int_greater, lane, Lane::of_bits(0)) : lane;
}

bool append(const Program& program, OpId op, std::span<const Lane> operands, Lane& result) {
  const ValueId value = program.result(op);
  if (!has_lanes(program.type(value).dtype)) return false;
  for (const ValueId operand : program.op_operands(op)) {
    if (!has_lanes(program.type(operand).dtype)) return false;
  }
  const Result made = computed(program, op, operands);
  if (!made) return false;
  const bool rounds = program.type(value).dtype == DType::bf16 && !is_exact(program.kind(op));
  result = rounds ? rounded_to_bf16(*made) : *made;
  return true;
}

}  // namespace weft::jit
