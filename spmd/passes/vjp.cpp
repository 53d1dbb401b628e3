#include <weft/spmd/passes/vjp.hpp>

#include <weft/spmd/error.hpp>

namespace weft {

void copy_op(const Program& program, OpId op, ForwardOp& copy) {
  const auto operands = program.op_operands(op);
  const auto attrs = program.op_attrs(op);
  copy.kind = program.kind(op);
  copy.operands.assign(operands.begin(), operands.end());
  copy.attrs.assign(attrs.begin(), attrs.end());
  copy.result = program.result(op);
}

bool has_vjp(OpKind kind) noexcept {
  switch (kind) {
    case OpKind::constant:
    case OpKind::iota:
    case OpKind::rng_bit_generator:
    case OpKind::sign:
    case OpKind::is_finite:
    case OpKind::check_index:
    case OpKind::compare:
    case OpKind::logical_and: return false;
    default: return true;
  }
}

ValueId operand_cotangent(Builder& builder, const ForwardOp& op, std::size_t index,
                          ValueId cotangent) {
  WEFT_CHECK(has_vjp(op.kind) && index < op.operands.size(), to_string(op.kind), index);
  if (is_composite(op.kind)) return composite_cotangent(builder, op, index, cotangent);
  if (is_elementwise(op.kind)) return elementwise_cotangent(builder, op, index, cotangent);
  switch (op.kind) {
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::broadcast_in_dim:
    case OpKind::slice:
    case OpKind::pad:
    case OpKind::concatenate:
    case OpKind::reverse: return shape_cotangent(builder, op, index, cotangent);
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice: return index_cotangent(builder, op, index, cotangent);
    case OpKind::dot_general: return dot_general_cotangent(builder, op, index, cotangent);
    case OpKind::convolution:
    case OpKind::reduce_window:
    case OpKind::select_and_scatter: return window_cotangent(builder, op, index, cotangent);
    case OpKind::reduce: return reduce_cotangent(builder, op, cotangent);
    case OpKind::copy:
    case OpKind::optimization_barrier: return cotangent;
    case OpKind::sharding_constraint: {
      const Sharding sharding =
          builder.program().constraints[static_cast<std::size_t>(op.attrs[0])];
      return builder.sharding_constraint(cotangent, sharding);
    }
    default:
      fail(Errc::invalid_argument,
           "grad: {} has no gradient; differentiate the global program, before it is partitioned",
           to_string(op.kind));
  }
}

}  // namespace weft
