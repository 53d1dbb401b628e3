#include "spmd/plan/spread.hpp"

#include <algorithm>

namespace weft {

std::optional<Spread> spread_of(const Program& program, OpId op) {
  if (program.kind(op) != OpKind::broadcast_in_dim) return {};
  // A carry's place gets its next value, perhaps before the last loop that reads the spread.
  const OpId maker = program.defining_op(program.op_operands(op)[0]);
  if (maker != kNoId && program.kind(maker) == OpKind::carry) return {};
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  Spread spread;
  std::int64_t repeats = 1;  // of each element or of the whole
  int changes = 0;           // from dims with the operand's elements to dims that repeat, or back
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

bool is_made_by_loops(const Program& program, OpId op) {
  return program.is_fill(op) || spread_of(program, op).has_value();
}

}  // namespace weft
