#include "spmd/fusion/fuse.hpp"

#include <algorithm>

#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

std::int64_t num_elements(const Program& program, OpId op) {
  return program.type(program.result(op)).num_elements();
}

/// Returns whether an op of the loop makes an operand of `fill`, which is a fill, a spread or a
/// view. If so, `fill` can't be in the loop, which would read the operand before it is complete.
bool reads_from(const Program& program, OpId fill, const FusedLoop& loop) {
  return std::ranges::any_of(program.op_operands(fill), [&](ValueId scalar) {
    const OpId op = program.defining_op(scalar);
    return op != kNoId && op >= loop.first && is_elementwise(program.kind(op));
  });
}

}  // namespace

std::vector<FusedLoop> fused_loops(const Program& program, const Target& target,
                                   std::span<const OpId> borders) {
  std::vector<FusedLoop> loops;
  if (target.tile_elements == 0) return loops;
  bool is_open = false;  // whether the last loop can take more ops
  auto border = borders.begin();
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (border != borders.end() && *border == op) {
      is_open = false;
      ++border;
    }
    if (is_elementwise(program.kind(op))) {
      if (!is_open || num_elements(program, loops.back().first) != num_elements(program, op)) {
        loops.push_back({.first = op});
      }
      loops.back().count = op + 1 - loops.back().first;
      is_open = true;
    } else if (is_open) {
      is_open = is_made_by_loops(program, op) && !reads_from(program, op, loops.back());
    }
  }
  return loops;
}

std::vector<bool> tiled_values(const Program& program, const Target& target,
                               std::span<const OpId> borders) {
  std::vector<bool> tiled(program.num_values(), false);
  if (target.tile_elements == 0) return tiled;
  // By elementwise op: the first op of the op's loop.
  std::vector<OpId> loop_of(program.num_ops(), kNoId);
  for (const auto [first, count] : fused_loops(program, target, borders)) {
    for (OpId op = first; op < first + count; ++op) {
      if (is_elementwise(program.kind(op))) loop_of[op] = first;
    }
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    tiled[program.result(op)] = loop_of[op] != kNoId || is_made_by_loops(program, op);
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId operand : program.op_operands(op)) {
      const OpId maker = program.defining_op(operand);
      const bool stays_in_loop =
          maker != kNoId && loop_of[op] != kNoId &&
          (is_made_by_loops(program, maker) || loop_of[maker] == loop_of[op]);
      const bool stays = stays_in_loop || (maker != kNoId && may_read_in_place(program, op, maker));
      if (!stays) tiled[operand] = false;
    }
  }
  for (const ProgramOutput& output : program.outputs) tiled[output.value] = false;
  return tiled;
}

std::vector<TileBuffers::Entry> TileBuffers::of(const FusedLoop& loop) {
  std::vector<Entry> entries;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> free;
  const auto is_made_here = [&](ValueId value) {
    const OpId maker = program_.defining_op(value);
    return is_made_by_loops(program_, maker) || program_.kind(maker) == OpKind::reduce_scatter;
  };
  const auto give = [&](ValueId value, std::uint32_t buffer) {
    buffer_of_[value] = buffer;
    entries.push_back({value, buffer});
  };
  for (OpId op = loop.first; op < loop.first + loop.count; ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    for (const ValueId operand : program_.op_operands(op)) {
      if (!tiled_[operand]) continue;
      if (last_read_[operand] == kNoId && is_made_here(operand)) give(operand, count++);
      last_read_[operand] = op;
    }
  }
  for (OpId op = loop.first; op < loop.first + loop.count; ++op) {
    if (!is_elementwise(program_.kind(op))) continue;
    // The result gets its buffer before operands release theirs, because it must not overlap
    // operands.
    if (const ValueId result = program_.result(op); tiled_[result]) {
      if (free.empty()) free.push_back(count++);
      give(result, free.back());
      free.pop_back();
    }
    for (const ValueId operand : program_.op_operands(op)) {
      if (!tiled_[operand] || last_read_[operand] != op) continue;
      if (!is_made_here(operand)) free.push_back(buffer_of_[operand]);
      last_read_[operand] = kNoId;
    }
  }
  std::ranges::sort(entries, {}, &Entry::value);
  return entries;
}

}  // namespace weft
