#include "spmd/plan/shared.hpp"

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/lifetime.hpp"

namespace weft {
namespace {

/// Returns whether exactly one loop over elementwise ops reads the value, and no other op does.
bool is_read_by_one_loop(const Program& program, std::span<const FusedLoop> loops, ValueId value) {
  const FusedLoop* reader = nullptr;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const auto operands = program.op_operands(op);
    if (std::ranges::find(operands, value) == operands.end()) continue;
    const auto has_op = [&](const FusedLoop& loop) {
      return op >= loop.first && op < loop.first + loop.count;
    };
    const auto loop = std::ranges::find_if(loops, has_op);
    if (loop == loops.end() || !is_elementwise(program.kind(op))) return false;
    if (reader != nullptr && reader != &*loop) return false;
    reader = &*loop;
  }
  return reader != nullptr;
}

}  // namespace

void share_values(Plan& plan, const Mesh& mesh, const Target& target,
                  std::span<const OpId> borders) {
  const Program& program = plan.program;
  const Loops loops(program);
  const std::vector<FusedLoop> fused = fused_loops(program, target, borders);
  const auto is_large_on_host = [&](OpId op, ValueId whole) {
    return program.type(whole).bytes() >= target.shared_bytes_min &&
           tier_of(meeting_atoms(program, op), mesh) == Tier::ici;
  };
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const ValueId result = program.result(op);
    // A result in a loop isn't shared, because the next iteration would overwrite it while a slower
    // chip still reads it.
    const bool may_be_shared = program.kind(op) == OpKind::all_gather && loops.of_op(op) == kNoId;
    if (may_be_shared && is_large_on_host(op, result)) plan.slots[result].place = Place::shared;
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (!is_collective(program.kind(op))) continue;
    for (const ValueId operand : program.op_operands(op)) plan.slots[operand].place = Place::temp;
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const ValueId result = program.result(op);
    if (plan.slots[result].place == Place::shared && may_be_part(program, op)) {
      plan.slots[program.op_operands(op)[0]] = {Place::part, result};
    }
    if (plan.slots[result].place == Place::temp && may_be_added_by_loops(program, op) &&
        is_large_on_host(op, program.op_operands(op)[0]) &&
        is_read_by_one_loop(program, fused, result)) {
      plan.slots[result].place = Place::tile;
    }
  }
}

bool may_be_part(const Program& program, OpId gather) {
  const ValueId part = program.op_operands(gather)[0];
  const OpId maker = program.defining_op(part);
  if (maker == kNoId || is_collective(program.kind(maker))) return false;
  const Loops loops(program);
  return loops.of_op(maker) == kNoId && std::ranges::count(program.operands, part) == 1 &&
         program.type(part).bytes() % kSlotAlignment == 0 &&
         is_one_range(program.shape(program.result(gather)), program.op_attrs(gather)[1]);
}

bool may_be_added_by_loops(const Program& program, OpId scatter) {
  if (program.kind(scatter) != OpKind::reduce_scatter) return false;
  const TensorType& whole = program.type(program.op_operands(scatter)[0]);
  const auto attrs = program.op_attrs(scatter);
  return (whole.dtype == DType::f32 || whole.dtype == DType::bf16) &&
         static_cast<ReduceKind>(attrs[1]) == ReduceKind::add &&
         is_one_range(whole.shape, attrs[2]) && Loops(program).of_op(scatter) == kNoId;
}

bool is_added_by_loops(const Program& program, const std::vector<Slot>& slots, ValueId value) {
  const OpId maker = program.defining_op(value);
  return slots[value].place == Place::tile && maker != kNoId &&
         program.kind(maker) == OpKind::reduce_scatter;
}

bool groups_differ(const Program& program, ValueId a, ValueId b) {
  return meeting_atoms(program, program.defining_op(a)) !=
         meeting_atoms(program, program.defining_op(b));
}

bool needs_final_barrier(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  const auto is_shared = [&](ValueId value) { return plan.slots[value].place == Place::shared; };
  const auto is_of_others = [&](ValueId value) {
    const OpId maker = program.defining_op(value);
    const bool is_made_where_read = maker != kNoId && is_made_by_loops(program, maker);
    return is_shared(value) || is_added_by_loops(program, plan.slots, value) ||
           (is_made_where_read && std::ranges::any_of(program.op_operands(maker), is_shared));
  };
  // Only chips of one host share values.
  const auto of_host = static_cast<AtomMask>(mesh.all_atoms() & ~mesh.dcn_atoms());
  const Loops loops(program);
  for (OpId op = program.num_ops(); op-- > 0;) {
    if (meeting_atoms(program, op) == of_host && loops.always_runs(op)) return false;
    const bool reads = std::ranges::any_of(program.op_operands(op), is_of_others);
    if (reads || is_shared(program.result(op))) return true;
  }
  return false;
}

}  // namespace weft
