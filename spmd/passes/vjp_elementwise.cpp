#include <weft/spmd/error.hpp>
#include <weft/spmd/passes/vjp.hpp>

namespace weft {
namespace {

/// Arithmetic on values of one type, so that the rules below read as formulas.
class Formula {
 public:
  Formula(Builder& builder, TensorType type) : builder_(builder), type_(type) {}

  ValueId number(double value) { return builder_.constant(value, type_); }
  ValueId neg(ValueId a) { return unary(OpKind::negate, a); }
  ValueId add(ValueId a, ValueId b) { return builder_.binary(OpKind::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return builder_.binary(OpKind::subtract, a, b); }
  ValueId mul(ValueId a, ValueId b) { return builder_.binary(OpKind::multiply, a, b); }
  ValueId div(ValueId a, ValueId b) { return builder_.binary(OpKind::divide, a, b); }
  ValueId pow(ValueId a, ValueId b) { return builder_.binary(OpKind::power, a, b); }
  ValueId unary(OpKind kind, ValueId a) { return builder_.unary(kind, a); }
  /// `then` where a `direction` b holds, `otherwise` elsewhere.
  ValueId where(CompareDirection direction, ValueId a, ValueId b, ValueId then, ValueId otherwise) {
    return builder_.select(builder_.compare(direction, a, b), then, otherwise);
  }

 private:
  Builder& builder_;
  TensorType type_;
};

ValueId unary_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const ValueId x = op.operands[0];
  const ValueId y = op.result;
  Formula f(builder, builder.type(x));
  switch (op.kind) {
    case OpKind::negate: return f.neg(g);
    case OpKind::abs: return f.mul(g, f.unary(OpKind::sign, x));
    case OpKind::exponential: return f.mul(g, y);
    case OpKind::log: return f.div(g, x);
    case OpKind::tanh: return f.mul(g, f.sub(f.number(1), f.mul(y, y)));
    case OpKind::sine: return f.mul(g, f.unary(OpKind::cosine, x));
    case OpKind::cosine: return f.mul(g, f.neg(f.unary(OpKind::sine, x)));
    case OpKind::logistic: return f.mul(g, f.mul(y, f.sub(f.number(1), y)));
    case OpKind::sqrt: return f.div(f.mul(g, f.number(0.5)), y);
    case OpKind::rsqrt: return f.mul(f.mul(g, f.number(-0.5)), f.mul(y, f.mul(y, y)));
    case OpKind::convert: return builder.convert(g, builder.type(x).dtype);
    default: WEFT_CHECK(false, to_string(op.kind));
  }
  return kNoId;
}

/// maximum and minimum: all to the operand that won, half to each where they tie.
ValueId extremum_cotangent(Formula& f, OpKind kind, ValueId mine, ValueId other, ValueId g) {
  const auto wins = kind == OpKind::maximum ? CompareDirection::gt : CompareDirection::lt;
  const ValueId tied =
      f.where(CompareDirection::eq, mine, other, f.mul(g, f.number(0.5)), f.number(0));
  return f.where(wins, mine, other, g, tied);
}

/// y = a^b. The limits at b = 0 (of the derivative by a) and a = 0 (by b) are 0; the plain formulas
/// would give 0 * inf.
ValueId power_cotangent(Formula& f, const ForwardOp& op, std::size_t index, ValueId g) {
  const ValueId a = op.operands[0];
  const ValueId b = op.operands[1];
  const ValueId zero = f.number(0);
  if (index == 0) {
    const ValueId slope = f.mul(b, f.pow(a, f.sub(b, f.number(1))));
    return f.mul(g, f.where(CompareDirection::eq, b, zero, zero, slope));
  }
  const ValueId slope = f.mul(op.result, f.unary(OpKind::log, a));
  return f.mul(g, f.where(CompareDirection::eq, a, zero, zero, slope));
}

ValueId binary_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const ValueId mine = op.operands[index];
  const ValueId other = op.operands[1 - index];
  const bool first = index == 0;
  Formula f(builder, builder.type(mine));
  switch (op.kind) {
    case OpKind::add: return g;
    case OpKind::subtract: return first ? g : f.neg(g);
    case OpKind::multiply: return f.mul(g, other);
    case OpKind::divide: return first ? f.div(g, other) : f.neg(f.div(f.mul(g, op.result), mine));
    case OpKind::maximum:
    case OpKind::minimum: return extremum_cotangent(f, op.kind, mine, other, g);
    case OpKind::power: return power_cotangent(f, op, index, g);
    default: WEFT_CHECK(false, to_string(op.kind));
  }
  return kNoId;
}

}  // namespace

ValueId elementwise_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  if (is_unary(op.kind)) return unary_cotangent(builder, op, g);
  if (is_binary(op.kind)) return binary_cotangent(builder, op, index, g);
  WEFT_CHECK(op.kind == OpKind::select && index > 0, to_string(op.kind), index);
  const ValueId zero = builder.constant(0, builder.type(g));
  return index == 1 ? builder.select(op.operands[0], g, zero)
                    : builder.select(op.operands[0], zero, g);
}

}  // namespace weft
