#include <algorithm>
#include <map>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

/// A limit for the size of a region, so that the sum of two sizes doesn't overflow.
constexpr std::uint64_t kRegionBytesMax = std::uint64_t{1} << 62;

/// Checks that sharding the global type gives the chip's type.
void check_boundary(const char* what, const Mesh& mesh, const TensorType& global,
                    const TensorType& local, const Sharding& sharding) {
  const int num_dims = global.shape.size();
  const bool fits = local.shape.size() == num_dims && local == chip_type(global, sharding, mesh);
  if (!fits) {
    fail(Errc::corrupt, "plan: {} is {} on a chip, but should be a shard of {} by {}", what,
         local.to_string(), global.to_string(), sharding.to_string(mesh, num_dims));
  }
}

void check_counts(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  if (plan.mesh_shape != mesh.shape() || plan.axis_names != mesh.axis_names() ||
      plan.dcn_shape != dcn_shape(mesh)) {
    fail(Errc::corrupt, "plan: is made for another mesh than {}", mesh.to_string());
  }
  if (plan.slots.size() != program.num_values()) {
    fail(Errc::corrupt, "plan: has {} slots for {} values", plan.slots.size(),
         program.num_values());
  }
  if (plan.input_types.size() != program.inputs.size() ||
      plan.output_types.size() != program.outputs.size()) {
    fail(Errc::corrupt, "plan: has {} global types for {} inputs, and {} for {} outputs",
         plan.input_types.size(), program.inputs.size(), plan.output_types.size(),
         program.outputs.size());
  }
}

void check_regions(const Plan& plan) {
  for (const std::uint64_t bytes : {plan.temp_bytes, plan.shared_bytes}) {
    if (bytes % kSlotAlignment != 0 || bytes > kRegionBytesMax) {
      fail(Errc::corrupt, "plan: a region has {} bytes; expected a multiple of {} up to {}", bytes,
           kSlotAlignment, kRegionBytesMax);
    }
  }
}

bool is_gathered(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  return op != kNoId && program.kind(op) == OpKind::all_gather;
}

/// Checks a value whose op writes it in place, as the chip's part of a shared value.
void check_part(const Plan& plan, ValueId value) {
  const Program& program = plan.program;
  const std::uint64_t whole = plan.slots[value].offset;
  const bool is_value = whole < program.num_values() &&
                        is_gathered(program, static_cast<ValueId>(whole)) &&
                        plan.slots[whole].place == Place::shared;
  if (is_value) {
    const OpId gather = program.defining_op(static_cast<ValueId>(whole));
    if (program.op_operands(gather)[0] == value && may_be_part(program, gather)) return;
  }
  fail(Errc::corrupt, "plan: value %{} is written as a part of %{}, but can't be a part of it",
       value, whole);
}

void check_places(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  std::vector<Slot> bound(program.num_values());  // indexed by value: input or output, if any
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const ProgramInput& input = program.inputs[i];
    check_boundary(input.name.c_str(), mesh, plan.input_types[i], program.type(input.value),
                   input.sharding);
    bound[input.value] = {Place::input, i};
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const auto& [value, name, sharding, updates] = program.outputs[i];
    check_boundary(name.c_str(), mesh, plan.output_types[i], program.type(value), sharding);
    if (bound[value].place != Place::temp) {
      fail(Errc::corrupt, "plan: output \"{}\" shares value %{} with an input or another output",
           name, value);
    }
    bound[value] = {Place::output, i};
  }
  for (ValueId value = 0; value < program.num_values(); ++value) {
    const Slot& slot = plan.slots[value];
    if (slot.place == Place::tile) {
      if (program.defining_op(value) != kNoId && bound[value].place == Place::temp) continue;
      fail(Errc::corrupt, "plan: value %{} has no place, but is an input or an output", value);
    }
    if (slot.place == Place::part && bound[value].place == Place::temp) {
      check_part(plan, value);
      continue;
    }
    const bool is_shared = slot.place == Place::shared;
    if (is_shared && !is_gathered(program, value)) {
      fail(Errc::corrupt, "plan: value %{} is shared, but not the result of an all_gather", value);
    }
    const bool is_bound = bound[value].place != Place::temp;
    if ((is_bound || !is_shared) &&
        (slot.place != bound[value].place || (is_bound && slot.offset != bound[value].offset))) {
      fail(Errc::corrupt, "plan: value %{} isn't where its input or output is bound", value);
    }
    if (is_bound) continue;
    const std::uint64_t bytes = slot_bytes(program.type(value));
    const std::uint64_t region = is_shared ? plan.shared_bytes : plan.temp_bytes;
    if (slot.offset % kSlotAlignment != 0 || slot.offset > region || bytes > region - slot.offset) {
      fail(Errc::corrupt, "plan: value %{} of {} bytes at {} isn't {}-byte aligned within {} bytes",
           value, bytes, slot.offset, kSlotAlignment, region);
    }
  }
}

void check_behind(const Plan& plan, ValueId before, ValueId value) {
  if (plan.slots[value].offset ==
      plan.slots[before].offset + slot_bytes(plan.program.type(before))) {
    return;
  }
  fail(Errc::corrupt, "plan: %{} isn't directly after %{}, but both are reduced together", value,
       before);
}

/// Checks that each collective is of one tier: that chips of one host meet in it, or one chip of
/// each host.
void check_tiers(const Program& program, const Mesh& mesh) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (!spans_tiers(meeting_atoms(program, op), mesh)) continue;
    fail(Errc::corrupt, "plan: op {} ({}) meets both within hosts and between them; expected one",
         op, to_string(program.kind(op)));
  }
}

/// Checks that only chips of one host meet in the op, because chips of several hosts share no
/// memory.
void check_on_host(const Program& program, const Mesh& mesh, OpId op) {
  if (tier_of(meeting_atoms(program, op), mesh) == Tier::ici) return;
  fail(Errc::corrupt, "plan: op {} ({}) crosses hosts, but %{} is in shared memory", op,
       to_string(program.kind(op)), program.result(op));
}

void check_collectives(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  const auto check = [&](OpId op, ValueId value) {
    if (plan.slots[value].place == Place::part && plan.slots[value].offset == program.result(op)) {
      return;
    }
    if (plan.slots[value].place != Place::temp) {
      fail(Errc::corrupt, "plan: op {} ({}) touches %{}, which isn't a temporary", op,
           to_string(program.kind(op)), value);
    }
  };
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (!is_collective(program.kind(op))) continue;
    for (const ValueId operand : program.op_operands(op)) check(op, operand);
    const ValueId result = program.result(op);
    const bool is_added = is_added_by_loops(program, plan.slots, result);
    const bool is_shared = plan.slots[result].place == Place::shared;
    if (is_added || is_shared) check_on_host(program, mesh, op);
    if (is_added) {
      if (may_be_added_by_loops(program, op)) continue;
      fail(Errc::corrupt, "plan: %{} has no place in memory, but loops can't add it", result);
    }
    if (!is_shared) check(op, result);
  }
  for (const PlanStep& step : plan.steps) {
    if (step.kind != StepKind::collective) continue;
    for (OpId op = step.first + 1; op < step.end(); ++op) {
      check_behind(plan, program.op_operands(op - 1)[0], program.op_operands(op)[0]);
      check_behind(plan, program.result(op - 1), program.result(op));
    }
  }
}

[[noreturn]] void fail_overlap(ValueId a, ValueId b) {
  fail(Errc::corrupt, "plan: %{} and %{} are live at the same time, but their memory overlaps", a,
       b);
}

/// Checks that temporaries that are live at the same op don't overlap. Keeps a map of the live
/// temporaries by offset while it visits the ops, and compares each new value with its neighbors in
/// the map.
void check_temporaries(const Plan& plan, const std::vector<Lifetime>& lifetimes) {
  const Program& program = plan.program;
  std::vector<std::vector<ValueId>> first_of(program.num_ops());
  std::vector<std::vector<ValueId>> last_of(program.num_ops());
  for (const ValueId value : program.results) {
    const ValueId carry = placed_as(program, value);
    if (carry == value) first_of[lifetimes[value].first].push_back(value);
    if (plan.slots[carry].place == plan.slots[value].place &&
        plan.slots[carry].offset == plan.slots[value].offset) {
      continue;
    }
    fail(Errc::corrupt, "plan: %{} isn't where its carry %{} is", value, carry);
  }
  std::map<std::uint64_t, ValueId> live;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId value : first_of[op]) {
      const std::uint64_t bytes = slot_bytes(program.type(value));
      if (plan.slots[value].place != Place::temp || bytes == 0) continue;
      const std::uint64_t begin = plan.slots[value].offset;
      const auto next = live.lower_bound(begin);
      if (next != live.end() && next->first < begin + bytes) fail_overlap(next->second, value);
      if (next != live.begin()) {
        const auto& [offset, other] = *std::prev(next);
        if (offset + slot_bytes(program.type(other)) > begin) fail_overlap(other, value);
      }
      live.emplace(begin, value);
      last_of[lifetimes[value].last].push_back(value);
    }
    for (const ValueId dead : last_of[op]) live.erase(plan.slots[dead].offset);
  }
}

/// Checks that shared values that exclude each other don't overlap. Compares all pairs, because
/// there are few shared values.
void check_shared(const Plan& plan, const std::vector<Lifetime>& lifetimes) {
  const Program& program = plan.program;
  std::vector<ValueId> shared;
  for (ValueId value = 0; value < program.num_values(); ++value) {
    if (plan.slots[value].place != Place::shared) continue;
    const std::uint64_t begin = plan.slots[value].offset;
    const std::uint64_t end = begin + slot_bytes(program.type(value));
    for (const ValueId other : shared) {
      const std::uint64_t other_begin = plan.slots[other].offset;
      const bool apart =
          end <= other_begin || other_begin + slot_bytes(program.type(other)) <= begin;
      if (!apart && exclude_each_other(program, plan.slots, lifetimes, value, other)) {
        fail_overlap(other, value);
      }
    }
    shared.push_back(value);
  }
}

}  // namespace

void verify(const Plan& plan, const Mesh& mesh) {
  verify(plan.program, mesh);
  check_counts(plan, mesh);
  check_tiers(plan.program, mesh);
  check_regions(plan);
  check_places(plan, mesh);
  verify_steps(plan, mesh);
  check_collectives(plan, mesh);
  const std::vector<Lifetime> lifetimes = lifetimes_of(plan.program, plan.steps, plan.slots);
  check_temporaries(plan, lifetimes);
  check_shared(plan, lifetimes);
}

}  // namespace weft
