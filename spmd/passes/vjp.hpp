#pragma once
/// Vector-Jacobian products: one rule per op kind, the "VJP" column of the table of primitives.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <weft/spmd/program/builder.hpp>

namespace weft {

/// An op of the forward computation, copied out of the program: the program's arrays may move while
/// its VJP is appended.
struct ForwardOp {
  OpKind kind;
  std::vector<ValueId> operands;
  std::vector<std::int64_t> attrs;
  ValueId result;
};
/// Into `copy`, whose room is used again.
void copy_op(const Program& program, OpId op, ForwardOp& copy);

/// False for kinds whose result carries no gradient to its operands: leaves, rng_bit_generator,
/// compare, logical_and, is_finite, sign.
bool has_vjp(OpKind kind) noexcept;

/// Appends the cotangent of operand number `index`, given the result's. The operand is floating and
/// has_vjp(kind). Throws invalid_argument for a collective: it has none, because the global program
/// is differentiated before it is partitioned.
ValueId operand_cotangent(Builder& builder, const ForwardOp& op, std::size_t index,
                          ValueId cotangent);

// By family, for operand_cotangent.
ValueId elementwise_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);
ValueId shape_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);
ValueId index_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);
ValueId reduce_cotangent(Builder& builder, const ForwardOp& op, ValueId g);
ValueId dot_general_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);
ValueId window_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);
ValueId composite_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g);

}  // namespace weft
