#include "spmd/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/passes/channels_last.hpp"
#include "spmd/passes/expand.hpp"
#include "spmd/passes/pad_uneven.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/passes/propagate.hpp"
#include "spmd/passes/recompute.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/plan/overlap_order.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"
#include "spmd/text/text.hpp"

namespace weft {
namespace {

/// Rebuilds a chip's program with copies, so that no operand or result of a collective is an input
/// or an output of the program, and each output is the result of its own op. Drops
/// optimization_barriers, which only earlier passes need.
class CopyInsertion {
 public:
  explicit CopyInsertion(const Program& program)
      : program_(program),
        loops_(program),
        value_of_(program.num_values(), kNoId),
        temp_of_(program.num_values(), kNoId),
        in_collective_(program.num_values(), false),
        outputs_of_(program.num_values()),
        output_values_(program.outputs.size(), kNoId) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (!is_collective(program.kind(op))) continue;
      for (const ValueId operand : program.op_operands(op)) in_collective_[source(operand)] = true;
      in_collective_[program.result(op)] = true;
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      outputs_of_[source(program.outputs[i].value)].push_back(i);
    }
  }

  Program run() {
    result_.begin_from(program_);
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] = result_.add_input(program_.type(input.value), input.kind, input.name,
                                                 input.sharding, input.loc);
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      const OpKind kind = program_.kind(op);
      if (kind == OpKind::optimization_barrier) continue;
      if (kind == OpKind::next) copy_swapped(op);
      add_op(op);
      if (!leaves_loop(kind)) {
        add_outputs(program_.result(op), !in_collective_[program_.result(op)]);
      } else if (loops_[loops_.of_op(op)].end == op + 1) {
        add_results(loops_[loops_.of_op(op)]);
      }
    }
    for (const ProgramInput& input : program_.inputs) add_outputs(input.value, false);
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      result_.add_output(output_values_[i], output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  /// Follows the value back through optimization_barriers, and returns the value that enters the
  /// first of them.
  ValueId source(ValueId value) const {
    OpId op = program_.defining_op(value);
    while (op != kNoId && program_.kind(op) == OpKind::optimization_barrier) {
      value = program_.op_operands(op)[0];
      op = program_.defining_op(value);
    }
    return value;
  }

  void add_op(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId use : program_.op_operands(op)) {
      const ValueId operand = source(use);
      operands.push_back(is_collective(program_.kind(op)) ? temp(operand, op) : value_of_[operand]);
    }
    if (const auto copied = swapped_.find(op); copied != swapped_.end()) {
      operands[2] = copied->second;
    }
    const ValueId result = program_.result(op);
    value_of_[result] = result_.add_op(program_.kind(op), operands, program_.op_attrs(op),
                                       program_.type(result), program_.op_locs[op]);
  }

  /// A `next` overwrites its carry. If another `next` takes its value from that carry, the value is
  /// copied first.
  void copy_swapped(OpId first_next) {
    const LoopRange& range = loops_[loops_.of_op(first_next)];
    if (first_next != range.nexts.front()) return;
    for (const OpId next : range.nexts) {
      const auto operands = program_.op_operands(next);
      const ValueId value = source(operands[2]);
      const OpId maker = program_.defining_op(value);
      if (value == source(operands[1]) ||
          std::ranges::find(range.carries, maker) == range.carries.end()) {
        continue;
      }
      swapped_[next] = copy(value);
    }
  }

  /// Adds the outputs of a loop or a branch that has ended. The loop writes a stack part by part,
  /// straight to its output. If the output updates an input, the stack is copied to it after the
  /// loop instead, because the loop may still read that input.
  void add_results(const LoopRange& range) {
    for (OpId op = range.begin; op < range.end; ++op) {
      const ValueId value = program_.result(op);
      const bool is_result = leaves_loop(program_.kind(op)) && &loops_[loops_.of_op(op)] == &range;
      if (!is_result) continue;
      const bool updates = std::ranges::any_of(outputs_of_[value], [&](std::size_t output) {
        return program_.outputs[output].updates >= 0;
      });
      const bool is_written_once = program_.kind(op) == OpKind::merge;
      const bool is_written_in_parts = program_.kind(op) == OpKind::stack && !updates;
      add_outputs(value, (is_written_once || is_written_in_parts) && !in_collective_[value]);
    }
  }

  /// Returns the new value that a collective reads for `value`. An input of the program is copied:
  /// for each such reader in a loop, but only once for all others.
  ValueId temp(ValueId value, OpId reader) {
    if (program_.defining_op(value) != kNoId) return value_of_[value];
    if (loops_.of_op(reader) != kNoId) return copy(value);  // only the loop can read this copy
    if (temp_of_[value] == kNoId) temp_of_[value] = copy(value);
    return temp_of_[value];
  }

  /// Adds copies of the value for its outputs. The first output gets no copy if `in_place`.
  void add_outputs(ValueId value, bool in_place) {
    for (const std::size_t output : outputs_of_[value]) {
      output_values_[output] = in_place ? value_of_[value] : copy(value);
      in_place = false;
    }
  }

  ValueId copy(ValueId value) {
    const OpId op = program_.defining_op(value);
    return result_.add_op(OpKind::copy, std::span(&value_of_[value], 1), {}, program_.type(value),
                          op == kNoId ? LocId{0} : program_.op_locs[op]);
  }

  const Program& program_;
  const Loops loops_;
  Program result_;
  std::map<OpId, ValueId> swapped_;  // key: a `next`
  std::vector<ValueId> value_of_;    // indexed by old value
  std::vector<ValueId> temp_of_;     // indexed by old value: the copy of an input
  std::vector<bool> in_collective_;
  std::vector<std::vector<std::size_t>> outputs_of_;
  std::vector<ValueId> output_values_;
};

/// Returns a line for each value, with the sharding that propagate chose.
std::string shardings_text(const Program& program, const Mesh& mesh,
                           std::span<const Sharding> shardings) {
  std::string text;
  for (ValueId value = 0; value < program.num_values(); ++value) {
    text += fmt::format("%{}: {} {}\n", value, program.type(value).to_string(),
                        shardings[value].to_string(mesh, program.shape(value).size()));
  }
  return text;
}

/// Returns a line for each value, with its place.
std::string places_text(const Plan& plan) {
  static constexpr std::array kNames{"temp", "input", "output", "shared", "tile", "part of"};
  std::string text = fmt::format("temp {} bytes (at least {}), shared {} bytes\n", plan.temp_bytes,
                                 plan.temp_bytes_bound, plan.shared_bytes);
  for (ValueId value = 0; value < plan.slots.size(); ++value) {
    const auto [place, offset] = plan.slots[value];
    text += fmt::format("%{}: {} {}\n", value, kNames[static_cast<std::size_t>(place)], offset);
  }
  return text;
}

}  // namespace

Plan make_plan(const Program& chip_program, const Mesh& mesh,
               std::span<const TensorType> input_types, std::span<const TensorType> output_types,
               const Target& target) {
  Plan plan;
  Program copied = CopyInsertion(chip_program).run();
  if (auto ordered = reorder_for_overlap(copied, mesh, target)) copied = *std::move(ordered);
  plan.program = fill_buckets(copied);
  const std::vector<OpId> borders = delayed_groups(plan.program, mesh, target);
  plan.input_types.assign(input_types.begin(), input_types.end());
  plan.output_types.assign(output_types.begin(), output_types.end());
  plan.mesh_shape = mesh.shape();
  plan.axis_names = mesh.axis_names();
  plan.dcn_shape = dcn_shape(mesh);
  plan.slots.resize(plan.program.num_values());
  const std::vector<bool> tiled = tiled_values(plan.program, target, borders);
  for (ValueId value = 0; value < tiled.size(); ++value) {
    if (tiled[value]) plan.slots[value].place = Place::tile;
  }
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    plan.slots[plan.program.inputs[i].value] = {Place::input, i};
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    plan.slots[plan.program.outputs[i].value] = {Place::output, i};
  }
  share_values(plan, mesh, target, borders);
  schedule(plan, mesh, target, borders);
  place_waits(plan, mesh, target);
  place_values(plan);
  return plan;
}

Mesh mesh_of(const Plan& plan, std::vector<int> device_ids) {
  return {plan.mesh_shape, plan.axis_names, std::move(device_ids), plan.dcn_shape};
}

Mesh mesh_on(const Plan& plan, const Mesh& chips) {
  const Mesh mesh = mesh_of(plan);
  if (mesh.shape() == chips.shape() && mesh.axis_names() == chips.axis_names()) {
    Mesh of_plan = mesh_of(plan, chips.device_ids());
    if (chips == of_plan || chips == in_one_memory(of_plan)) return of_plan;
  }
  fail(Errc::mesh_mismatch, "the plan is for the mesh {}{}, but this chip is in the mesh {}{}",
       mesh.to_string(), hosts_text(mesh), chips.to_string(), hosts_text(chips));
}

Plan compile(const Program& program, const Mesh& mesh, const Target& target,
             const PassObserver& observer) {
  const auto passed = [&](std::string_view pass, const Program& result) {
    if (observer) observer(pass, to_text(result, mesh));
    verify(result, mesh);
  };
  passed("trace", program);
  Program global = canonicalize(program, true);
  passed("canonicalize", global);
  if (const std::optional<Program> even = pad_uneven(global, mesh)) {
    global = canonicalize(*even, true);
    passed("pad", global);
  }
  std::vector<Sharding> shardings;
  const auto propagate_all = [&] {
    shardings = propagate(global, mesh);
    // This is repeated, because shardings propagate through an expanded composite and may then
    // reach other composites that must be expanded.
    while (const std::optional<Program> expanded = expand(global, shardings)) {
      global = canonicalize(*expanded, true);
      passed("expand", global);
      shardings = propagate(global, mesh);
    }
  };
  propagate_all();
  if (auto sharded = shard_optimizer_state(global, mesh, shardings, target.shared_bytes_min)) {
    global = *std::move(sharded);
    propagate_all();
  }
  if (observer) observer("propagate", shardings_text(global, mesh, shardings));
  Program partitioned = partition(global, mesh, shardings);
  passed("partition", partitioned);
  if (std::optional<Program> lowered = lower_tiers(partitioned, mesh)) {
    partitioned = *std::move(lowered);
    passed("tiers", partitioned);
  }
  Program chip_program = canonicalize(partitioned, false);
  passed("canonicalize-chip", chip_program);
  if (target.features_last) {
    if (const std::optional<Program> moved = channels_last(chip_program)) {
      chip_program = canonicalize(*moved, false);
      passed("channels-last", chip_program);
    }
  }
  if (auto again = recompute_in_loops(chip_program, target)) {
    chip_program = *std::move(again);
    passed("recompute", chip_program);
  }
  std::vector<TensorType> input_types;
  std::vector<TensorType> output_types;
  for (const ProgramInput& input : program.inputs) {
    input_types.push_back(program.type(input.value));
  }
  for (const ProgramOutput& output : program.outputs) {
    output_types.push_back(program.type(output.value));
  }
  Plan plan = make_plan(chip_program, mesh, input_types, output_types, target);
  if (observer)
    observer("plan", to_text(plan.program, mesh) + places_text(plan) + steps_text(plan));
  verify(plan, mesh);
  return plan;
}

}  // namespace weft
