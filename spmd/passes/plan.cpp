#include <weft/spmd/passes/plan.hpp>

#include <algorithm>
#include <tuple>

#include <weft/spmd/passes/canonicalize.hpp>
#include <weft/spmd/passes/lifetime.hpp>
#include <weft/spmd/passes/partition.hpp>
#include <weft/spmd/passes/propagate.hpp>
#include <weft/spmd/program/verify.hpp>

namespace weft {
namespace {

/// Rebuilds a chip's program with copies, so that collectives touch neither inputs nor outputs and
/// each output is the result of an op of its own.
class CopyInsertion {
 public:
  explicit CopyInsertion(const Program& program)
      : program_(program),
        value_of_(program.num_values(), kNoId),
        temp_of_(program.num_values(), kNoId),
        in_collective_(program.num_values(), false),
        outputs_of_(program.num_values()),
        output_values_(program.outputs.size(), kNoId) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (!is_collective(program.kind(op))) continue;
      for (const ValueId operand : program.op_operands(op)) in_collective_[operand] = true;
      in_collective_[program.result(op)] = true;
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      outputs_of_[program.outputs[i].value].push_back(i);
    }
  }

  Program run() {
    result_.const_pool = program_.const_pool;
    result_.locs = program_.locs;
    for (const ProgramInput& input : program_.inputs) {
      value_of_[input.value] =
          result_.add_input(program_.type(input.value), input.kind, input.name, input.sharding);
    }
    for (OpId op = 0; op < program_.num_ops(); ++op) {
      add_op(op);
      add_outputs(program_.result(op), !in_collective_[program_.result(op)]);
    }
    for (const ProgramInput& input : program_.inputs) add_outputs(input.value, false);
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const ProgramOutput& output = program_.outputs[i];
      result_.add_output(output_values_[i], output.name, output.sharding, output.updates);
    }
    return std::move(result_);
  }

 private:
  void add_op(OpId op) {
    std::vector<ValueId> operands;
    for (const ValueId operand : program_.op_operands(op)) {
      operands.push_back(is_collective(program_.kind(op)) ? temp(operand) : value_of_[operand]);
    }
    const ValueId result = program_.result(op);
    value_of_[result] = result_.add_op(program_.kind(op), operands, program_.op_attrs(op),
                                       program_.type(result), program_.op_locs[op]);
  }

  /// The value, or for an input its one copy among the temporaries.
  ValueId temp(ValueId value) {
    if (program_.defining_op(value) != kNoId) return value_of_[value];
    if (temp_of_[value] == kNoId) temp_of_[value] = copy(value);
    return temp_of_[value];
  }

  /// The first output that is this value may be the value itself.
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
  Program result_;
  std::vector<ValueId> value_of_;  // by old value
  std::vector<ValueId> temp_of_;   // by old value: an input's copy
  std::vector<bool> in_collective_;
  std::vector<std::vector<std::size_t>> outputs_of_;
  std::vector<ValueId> output_values_;
};

struct Placed {
  Lifetime lifetime;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The lowest offset at which `bytes` fit beside all that lives at the same time. `placed` is in
/// order of begin.
std::uint64_t first_fit(const std::vector<Placed>& placed, const Lifetime& lifetime,
                        std::uint64_t bytes) {
  std::uint64_t offset = 0;
  for (const Placed& other : placed) {
    if (!other.lifetime.overlaps(lifetime)) continue;
    if (other.begin >= offset + bytes) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

/// Greedy by size, as TFLite's planner: the largest value first.
void place_temporaries(Plan& plan) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(plan.program);
  std::vector<ValueId> order;
  for (ValueId value = 0; value < plan.program.num_values(); ++value) {
    if (plan.slots[value].place == Place::temp) order.push_back(value);
  }
  const auto bytes = [&](ValueId value) { return slot_bytes(plan.program.type(value)); };
  std::ranges::sort(order, {}, [&](ValueId value) { return std::tuple(~bytes(value), value); });
  std::vector<Placed> placed;
  for (const ValueId value : order) {
    const std::uint64_t offset = first_fit(placed, lifetimes[value], bytes(value));
    plan.slots[value].offset = offset;
    plan.temp_bytes = std::max(plan.temp_bytes, offset + bytes(value));
    const Placed entry{lifetimes[value], offset, offset + bytes(value)};
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::begin), entry);
  }
  std::vector<std::uint64_t> live_bytes(plan.program.num_ops(), 0);
  for (const ValueId value : order) {
    for (OpId op = lifetimes[value].first; op <= lifetimes[value].last; ++op) {
      live_bytes[op] += bytes(value);
    }
  }
  for (const std::uint64_t live : live_bytes) {
    plan.temp_bytes_bound = std::max(plan.temp_bytes_bound, live);
  }
}

}  // namespace

Plan make_plan(const Program& chip_program, const Mesh& mesh,
               std::span<const TensorType> input_types, std::span<const TensorType> output_types) {
  Plan plan;
  plan.program = CopyInsertion(chip_program).run();
  plan.input_types.assign(input_types.begin(), input_types.end());
  plan.output_types.assign(output_types.begin(), output_types.end());
  plan.mesh_shape = mesh.shape();
  plan.axis_names = mesh.axis_names();
  plan.slots.resize(plan.program.num_values());
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    plan.slots[plan.program.inputs[i].value] = {Place::input, i};
  }
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    plan.slots[plan.program.outputs[i].value] = {Place::output, i};
  }
  place_temporaries(plan);
  return plan;
}

Plan compile(const Program& program, const Mesh& mesh) {
  verify(program, mesh);
  const Program global = canonicalize(program, true);
  verify(global, mesh);
  const std::vector<Sharding> shardings = propagate(global, mesh);
  const Program partitioned = partition(global, mesh, shardings);
  verify(partitioned, mesh);
  const Program chip_program = canonicalize(partitioned, false);
  verify(chip_program, mesh);
  std::vector<TensorType> input_types;
  std::vector<TensorType> output_types;
  for (const ProgramInput& input : program.inputs) {
    input_types.push_back(program.type(input.value));
  }
  for (const ProgramOutput& output : program.outputs) {
    output_types.push_back(program.type(output.value));
  }
  Plan plan = make_plan(chip_program, mesh, input_types, output_types);
  verify(plan, mesh);
  return plan;
}

}  // namespace weft
