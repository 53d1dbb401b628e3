#include "spmd/fusion/spread.hpp"

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"

namespace weft {

namespace {

/// Returns whether the operand of the op is a loop's carry. If so, the op's result must be stored,
/// because the carry may be overwritten before the last reader of the result has run.
bool reads_carry(const Program& program, OpId op) {
  const OpId maker = program.defining_op(program.op_operands(op)[0]);
  return maker != kNoId && program.kind(maker) == OpKind::carry;
}

}  // namespace

std::optional<Spread> spread_of(const Program& program, OpId op) {
  if (program.kind(op) != OpKind::broadcast_in_dim || reads_carry(program, op)) return {};
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  Spread spread;
  std::int64_t repeats = 1;  // how often each element or the whole operand is repeated
  int changes = 0;           // changes between dims of the operand and dims that repeat
  std::optional<bool> was_kept;
  for (int dim = 0; dim < to.size(); ++dim) {
    if (to[dim] == 1) continue;
    const auto dims = program.op_attrs(op);
    const auto found = std::ranges::find(dims, dim);
    const bool is_kept = found != dims.end() && from[static_cast<int>(found - dims.begin())] != 1;
    if (!is_kept) repeats *= to[dim];
    if (was_kept && *was_kept != is_kept) ++changes;
    if (!was_kept) spread.repeats_row = !is_kept;
    was_kept = is_kept;
  }
  if (changes != 1) return {};
  spread.rows = spread.repeats_row ? repeats : from.num_elements();
  spread.columns = spread.repeats_row ? from.num_elements() : repeats;
  if (spread.columns < kSpreadColumnsMin) return {};
  return spread;
}

bool is_view(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  if (kind != OpKind::reshape && kind != OpKind::all_slice) return false;
  return !reads_carry(program, op) &&
         (kind == OpKind::reshape ||
          is_one_range(program.shape(program.op_operands(op)[0]), program.op_attrs(op)[1]));
}

bool may_read_in_place(const Program& program, OpId reader, OpId view) {
  const OpKind kind = program.kind(reader);
  return program.kind(view) == OpKind::reshape && is_view(program, view) && !is_collective(kind) &&
         !is_border(kind) && !is_cond_border(kind) && !begins_range(kind) &&
         !is_elementwise(kind) && !is_made_by_loops(program, reader) &&
         kind != OpKind::optimization_barrier;
}

bool is_made_by_loops(const Program& program, OpId op) {
  return program.is_fill(op) || is_view(program, op) || spread_of(program, op).has_value();
}

bool is_one_range(const Shape& whole, std::int64_t dim) {
  return std::all_of(whole.begin(), whole.begin() + dim,
                     [](std::int64_t size) { return size == 1; });
}

}  // namespace weft
