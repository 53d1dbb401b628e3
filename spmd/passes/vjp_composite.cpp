#include <array>

#include <weft/spmd/passes/decompose.hpp>
#include <weft/spmd/passes/grad.hpp>
#include <weft/spmd/passes/vjp.hpp>

namespace weft {
namespace {

/// For the ops that have no kernel for their gradient: that of their decomposition.
ValueId decomposed_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  // Copies, so that what the operands have in common counts for this one alone.
  std::vector<ValueId> operands;
  for (const ValueId operand : op.operands) operands.push_back(builder.copy(operand));
  const ValueId result = decompose(builder, op.kind, operands, op.attrs);
  const ValueId weighted = builder.binary(OpKind::multiply, result, builder.copy(g));
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < builder.type(weighted).shape.size(); ++dim) dims.push_back(dim);
  const ValueId sum = builder.reduce(ReduceKind::add, weighted, dims);
  return grad(builder, sum, std::array{operands[index]})[0];
}

ValueId attention_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const auto& in = op.operands;
  const Shape q = builder.type(in[0]).shape;
  const Shape v = builder.type(in[2]).shape;
  if (q[3] != v[3]) return decomposed_cotangent(builder, op, index, g);
  // Each operand's part of one and the same op: canonicalize sees that it is the same.
  const ValueId all =
      builder.attention_grad(in[0], in[1], in[2], op.result, g, attention_form_of(op.attrs));
  const std::int64_t begin = index == 0 ? 0 : q[2] + (index == 1 ? 0 : v[2]);
  const std::int64_t end = begin + (index == 0 ? q[2] : v[2]);
  return builder.slice(all, std::array<std::int64_t, 4>{0, 0, begin, 0},
                       std::array<std::int64_t, 4>{q[0], q[1], end, q[3]},
                       std::array<std::int64_t, 4>{1, 1, 1, 1});
}

}  // namespace

ValueId composite_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  switch (op.kind) {
    case OpKind::softmax: return builder.softmax_grad(OpKind::softmax_grad, op.result, g);
    case OpKind::log_softmax: return builder.softmax_grad(OpKind::log_softmax_grad, op.result, g);
    case OpKind::normalize:
      return builder.normalize_grad(op.operands[0], g, normalization_of(op.attrs));
    case OpKind::attention: return attention_cotangent(builder, op, index, g);
    case OpKind::cross_entropy:
      return builder.cross_entropy_grad(op.operands[0], op.operands[1], g);
    default: return decomposed_cotangent(builder, op, index, g);
  }
}

}  // namespace weft
