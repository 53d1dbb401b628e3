#include "spmd/plan/donate.hpp"

#include <algorithm>

#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// Returns, for each input that an output updates, the ops that read the input. Ops that read a
/// fill or spread of the input count too, because their loop computes the fill or spread from the
/// input itself.
std::vector<std::vector<OpId>> readers_of_updated(const Program& program) {
  constexpr std::int32_t kNone = -1;
  std::vector<std::int32_t> input_of(program.num_values(), kNone);
  for (const ProgramOutput& output : program.outputs) {
    if (output.updates < 0) continue;
    input_of[program.inputs[static_cast<std::size_t>(output.updates)].value] = output.updates;
  }
  std::vector<std::vector<OpId>> readers(program.inputs.size());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId operand : program.op_operands(op)) {
      const std::int32_t input = input_of[operand];
      if (input == kNone) continue;
      readers[static_cast<std::size_t>(input)].push_back(op);
      if (is_made_by_loops(program, op)) input_of[program.result(op)] = input;
    }
  }
  return readers;
}

/// Returns for each op the loop step that contains the op, or a compute step with the op alone.
std::vector<PlanStep> loops_of(const Program& program, std::span<const PlanStep> steps) {
  std::vector<PlanStep> loops(program.num_ops());
  for (OpId op = 0; op < program.num_ops(); ++op) loops[op] = {StepKind::compute, op, 1};
  for (const PlanStep& step : steps) {
    if (step.kind != StepKind::loop) continue;
    for (OpId op = step.first; op < step.end(); ++op) loops[op] = step;
  }
  return loops;
}

}  // namespace

std::vector<bool> donated_updates(const Program& program, std::span<const PlanStep> steps) {
  const std::vector<std::vector<OpId>> readers = readers_of_updated(program);
  const std::vector<PlanStep> loops = loops_of(program, steps);
  std::vector<bool> donated;
  for (const ProgramOutput& output : program.outputs) {
    donated.push_back(false);
    const OpId writer = program.defining_op(output.value);
    if (output.updates < 0 || writer == kNoId) continue;
    const ProgramInput& input = program.inputs[static_cast<std::size_t>(output.updates)];
    if (program.type(input.value) != program.type(output.value) ||
        !input.sharding.same_layout(output.sharding)) {
      continue;
    }
    const PlanStep& loop = loops[writer];
    // A stored fill isn't written by the loop that contains it, but by a step before that loop.
    const bool in_loop = is_elementwise(program.kind(writer));
    const auto& reading = readers[static_cast<std::size_t>(output.updates)];
    donated.back() = std::ranges::all_of(reading, [&](OpId reader) {
      if (reader < loop.first) return true;
      return in_loop && reader <= writer && is_elementwise(program.kind(reader));
    });
  }
  return donated;
}

}  // namespace weft
