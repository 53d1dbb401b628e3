#include "spmd/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/passes/expand.hpp"
#include "spmd/passes/pad_uneven.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/passes/propagate.hpp"
#include "spmd/plan/bucket.hpp"
#include "spmd/plan/channels_last.hpp"
#include "spmd/plan/fuse.hpp"
#include "spmd/plan/lifetime.hpp"
#include "spmd/plan/schedule.hpp"
#include "spmd/plan/shared.hpp"
#include "spmd/text/text.hpp"

namespace weft {
namespace {

/// Rebuilds a chip's program with copies, so that collectives touch neither inputs nor outputs, and
/// each output is the result of an op of its own. Drops optimization_barriers, which only earlier
/// passes need.
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
    result_.const_pool = program_.const_pool;
    result_.custom_targets = program_.custom_targets;
    result_.locs = program_.locs;
    result_.reserve(program_);
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
  /// The value before all optimization_barriers that it passed through.
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

  /// A `next` overwrites its carry. If another one then has that for its value, that is copied.
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

  /// The outputs of a loop or a branch that has ended. A stack may be written in place, part by
  /// part, unless its items may lie there.
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

  /// The operand of a collective: the value itself, or for an input its one copy.
  ValueId temp(ValueId value, OpId reader) {
    if (program_.defining_op(value) != kNoId) return value_of_[value];
    if (loops_.of_op(reader) != kNoId) return copy(value);  // others can't read it
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
  std::map<OpId, ValueId> swapped_;  // by `next`
  std::vector<ValueId> value_of_;    // by old value
  std::vector<ValueId> temp_of_;     // by old value: an input's copy
  std::vector<bool> in_collective_;
  std::vector<std::vector<std::size_t>> outputs_of_;
  std::vector<ValueId> output_values_;
};

/// Places the values of one region.
class Placement {
 public:
  Placement(Plan& plan, Place region)
      : plan_(plan), lifetimes_(lifetimes_of(plan.program, plan.steps, plan.slots)) {
    const Program& program = plan.program;
    for (ValueId value = 0; value < program.num_values(); ++value) {
      bytes_.push_back(slot_bytes(program.type(value)));
    }
    std::vector<bool> in_bucket(program.num_values(), false);
    const auto add_range = [&](const PlanStep& bucket, auto value_of) {
      begin_block();
      for (OpId op = bucket.first; op < bucket.end(); ++op) {
        const ValueId value = placed_as(program, value_of(op));
        add(value);
        in_bucket[value] = true;
      }
    };
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::collective || step.count == 1 || region != Place::temp) continue;
      add_range(step, [&](OpId op) { return program.op_operands(op)[0]; });
      add_range(step, [&](OpId op) { return program.result(op); });
    }
    for (ValueId value = 0; value < program.num_values(); ++value) {
      if (plan.slots[value].place != region || in_bucket[value]) continue;
      if (placed_as(program, value) != value) continue;
      begin_block();
      add(value);
    }
    std::ranges::sort(blocks_, {},
                      [&](const Block& block) { return std::tuple(~block.bytes, front(block)); });
  }

  /// Greedy by size, as TFLite's planner: the largest block first. Returns the region's size.
  std::uint64_t place() {
    std::uint64_t size = 0;
    std::vector<Range> placed;  // in order of offset
    for (const Block& block : blocks_) {
      const std::uint64_t begin = first_fit(placed, block);
      const Range range{begin, begin + block.bytes, front(block)};
      placed.insert(std::ranges::upper_bound(placed, begin, {}, &Range::begin), range);
      size = std::max(size, range.end);
      std::uint64_t offset = begin;
      for (std::size_t i = block.begin; i < block.end; ++i) {
        plan_.slots[values_[i]].offset = offset;
        offset += bytes_[values_[i]];
      }
    }
    for (ValueId value = 0; value < plan_.slots.size(); ++value) {
      plan_.slots[value] = plan_.slots[placed_as(plan_.program, value)];
    }
    return size;
  }

  /// The most bytes that live at once.
  std::uint64_t bound() const {
    std::vector<std::uint64_t> change(plan_.program.num_ops() + 1, 0);  // at each op, modulo 2^64
    for (const Block& block : blocks_) {
      change[lifetimes_[front(block)].first] += block.bytes;
      change[lifetimes_[front(block)].last + 1] -= block.bytes;
    }
    std::uint64_t live = 0;
    std::uint64_t most = 0;
    for (const std::uint64_t by : change) most = std::max(most, live += by);
    return most;
  }

 private:
  /// Adjacent values with one lifetime: a bucket's operands or results, or a single value.
  struct Block {
    std::size_t begin = 0, end = 0;  // in values_
    std::uint64_t bytes = 0;
  };

  /// Where a block lies; `value` is the block's first value.
  struct Range {
    std::uint64_t begin = 0, end = 0;
    ValueId value = kNoId;
  };

  void begin_block() { blocks_.push_back({values_.size(), values_.size(), 0}); }
  void add(ValueId value) {
    values_.push_back(value);
    ++blocks_.back().end;
    blocks_.back().bytes += bytes_[value];
  }
  ValueId front(const Block& block) const { return values_[block.begin]; }

  /// The lowest offset at which the block overlaps no placed block that must not share its bytes.
  std::uint64_t first_fit(const std::vector<Range>& placed, const Block& block) const {
    std::uint64_t offset = 0;
    for (const Range& other : placed) {
      if (other.begin >= offset + block.bytes) break;
      if (other.end > offset &&
          exclude_each_other(plan_.program, plan_.slots, lifetimes_, front(block), other.value)) {
        offset = other.end;
      }
    }
    return offset;
  }

  Plan& plan_;
  std::vector<Lifetime> lifetimes_;
  std::vector<std::uint64_t> bytes_;  // by value
  std::vector<ValueId> values_;
  std::vector<Block> blocks_;
};

/// A line for each value with the sharding that propagate chose.
std::string shardings_text(const Program& program, const Mesh& mesh,
                           std::span<const Sharding> shardings) {
  std::string text;
  for (ValueId value = 0; value < program.num_values(); ++value) {
    text += fmt::format("%{}: {} {}\n", value, program.type(value).to_string(),
                        shardings[value].to_string(mesh, program.shape(value).size()));
  }
  return text;
}

/// A line for each value: where it lies.
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
               const PlanOptions& options) {
  Plan plan;
  plan.program = fill_buckets(CopyInsertion(chip_program).run());
  plan.input_types.assign(input_types.begin(), input_types.end());
  plan.output_types.assign(output_types.begin(), output_types.end());
  plan.mesh_shape = mesh.shape();
  plan.axis_names = mesh.axis_names();
  plan.slots.resize(plan.program.num_values());
  const std::vector<bool> tiled = tiled_values(plan.program);
  for (ValueId value = 0; value < tiled.size(); ++value) {
    if (tiled[value]) plan.slots[value].place = Place::tile;
  }
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    plan.slots[plan.program.inputs[i].value] = {Place::input, i};
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    plan.slots[plan.program.outputs[i].value] = {Place::output, i};
  }
  share_values(plan, mesh, options);
  schedule(plan, mesh);
  Placement temporaries(plan, Place::temp);
  plan.temp_bytes = temporaries.place();
  plan.temp_bytes_bound = temporaries.bound();
  plan.shared_bytes = Placement(plan, Place::shared).place();
  return plan;
}

Plan compile(const Program& program, const Mesh& mesh, const PlanOptions& options,
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
    // Shardings pass through an expanded composite, and may so reach other composites.
    while (const std::optional<Program> expanded = expand(global, shardings)) {
      global = canonicalize(*expanded, true);
      passed("expand", global);
      shardings = propagate(global, mesh);
    }
  };
  propagate_all();
  if (auto sharded = shard_optimizer_state(global, mesh, shardings, options.shared_bytes_min)) {
    global = *std::move(sharded);
    propagate_all();
  }
  if (observer) observer("propagate", shardings_text(global, mesh, shardings));
  const Program partitioned = partition(global, mesh, shardings);
  passed("partition", partitioned);
  Program chip_program = canonicalize(partitioned, false);
  passed("canonicalize-chip", chip_program);
  if (const std::optional<Program> moved = channels_last(chip_program)) {
    chip_program = canonicalize(*moved, false);
    passed("channels-last", chip_program);
  }
  if (auto again = recompute_in_loops(chip_program, options.recomputed_bytes_min)) {
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
  Plan plan = make_plan(chip_program, mesh, input_types, output_types, options);
  if (observer)
    observer("plan", to_text(plan.program, mesh) + places_text(plan) + steps_text(plan));
  verify(plan, mesh);
  return plan;
}

}  // namespace weft
