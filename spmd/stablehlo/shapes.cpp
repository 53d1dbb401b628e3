// Lowers the ops that move elements, and those that return their operand.

#include <fmt/format.h>

#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

HloValue lower_reshape(const HloOp& op) { return op.write().reshape(op.operand(0), op.type.dims); }

HloValue lower_transpose(const HloOp& op) {
  return op.write().transpose(op.operand(0), op.attrs());
}

HloValue lower_broadcast(const HloOp& op) {
  return op.write().broadcast(op.operand(0), op.type, op.attrs());
}

HloDims list_of_dims(Words words) { return {words.begin(), words.end()}; }

HloValue lower_slice(const HloOp& op) {
  const auto [start, limit, stride] = triples(op.attrs());
  return op.write().slice(op.operand(0), list_of_dims(start), list_of_dims(limit),
                          list_of_dims(stride));
}

HloValue lower_pad(const HloOp& op) {
  const auto [low, high, interior] = triples(op.attrs());
  return op.write().pad(op.operand(0), op.operand(1), list_of_dims(low), list_of_dims(high),
                        list_of_dims(interior));
}

HloValue lower_concatenate(const HloOp& op) {
  return op.write().op("concatenate", op.operands, op.type,
                       fmt::format("dimension = {} : i64", op.attrs()[0]));
}

HloValue lower_reverse(const HloOp& op) {
  return op.write().op("reverse", op.operands, op.type, "dimensions = " + hlo_array(op.attrs()));
}

/// Returns the op's operands with clamped indices. The operands from `first` on are the indices of
/// a part with these sizes in operand 0. StableHLO's ops also clamp indices, but XLA adds the
/// indices of a slice of a slice and clamps only the sum.
HloWriter::Values with_clamped(const HloOp& op, std::size_t first, const HloDims& sizes) {
  HloWriter& w = op.write();
  HloWriter::Values operands = op.operands;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    HloValue& index = operands[first + dim];
    const auto last = static_cast<double>(op.operand(0).type.dims[dim] - sizes[dim]);
    const HloValue low = w.splat(index.type, 0);
    const HloValue high = w.splat(index.type, last);
    index = w.op("clamp", {low, index, high}, index.type);
  }
  return operands;
}

HloValue lower_dynamic_slice(const HloOp& op) {
  if (op.type.rank() == 0) return op.operand(0);
  return op.write().op("dynamic_slice", with_clamped(op, 1, op.type.dims), op.type,
                       "slice_sizes = " + hlo_array(op.type.dims));
}

HloValue lower_dynamic_update_slice(const HloOp& op) {
  if (op.type.rank() == 0) return op.operand(1);
  return op.write().op("dynamic_update_slice", with_clamped(op, 2, op.operand(1).type.dims),
                       op.type);
}

/// Lowers all_slice, a slice whose begin depends on the chip.
HloValue lower_all_slice(const HloOp& op) {
  HloWriter& w = op.write();
  const HloValue first = op.context.of_position(op.firsts(0));
  const HloValue zero = w.splat(first.type, 0);
  HloWriter::Values operands{op.operand(0)};
  for (int dim = 0; dim < op.type.rank(); ++dim) {
    operands.push_back(dim == op.attrs()[1] ? first : zero);
  }
  return w.op("dynamic_slice", operands, op.type, "slice_sizes = " + hlo_array(op.type.dims));
}

HloValue lower_barrier(const HloOp& op) {
  return op.write().unary("optimization_barrier", op.operand(0));
}

HloValue first_operand(const HloOp& op) { return op.operand(0); }

}  // namespace

constexpr Lowering lowerings::reshape = lower_reshape;
constexpr Lowering lowerings::transpose = lower_transpose;
constexpr Lowering lowerings::broadcast_in_dim = lower_broadcast;
constexpr Lowering lowerings::slice = lower_slice;
constexpr Lowering lowerings::pad = lower_pad;
constexpr Lowering lowerings::concatenate = lower_concatenate;
constexpr Lowering lowerings::reverse = lower_reverse;
constexpr Lowering lowerings::dynamic_slice = lower_dynamic_slice;
constexpr Lowering lowerings::dynamic_update_slice = lower_dynamic_update_slice;
constexpr Lowering lowerings::all_slice = lower_all_slice;
constexpr Lowering lowerings::optimization_barrier = lower_barrier;
constexpr Lowering lowerings::copy = first_operand;
constexpr Lowering lowerings::sharding_constraint = first_operand;
constexpr Lowering lowerings::stop_gradient = first_operand;
constexpr Lowering lowerings::custom_gradient = first_operand;
constexpr Lowering lowerings::vary = first_operand;

}  // namespace weft
