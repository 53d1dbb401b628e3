#include "spmd/plan/donate.hpp"

#include <algorithm>

#include "spmd/ops/row.hpp"

namespace weft {
namespace {

/// The ops that read a value; of a fill, those that read what it makes, too, as each loop makes it
/// for itself.
std::vector<std::vector<OpId>> readers_of(const Program& program) {
  std::vector<std::vector<OpId>> readers(program.num_values());
  for (OpId op = program.num_ops(); op-- > 0;) {
    for (const ValueId operand : program.op_operands(op)) {
      readers[operand].push_back(op);
      if (!program.is_fill(op)) continue;
      const auto& of_fill = readers[program.result(op)];
      readers[operand].insert(readers[operand].end(), of_fill.begin(), of_fill.end());
    }
  }
  return readers;
}

/// The ops that run together with `writer`: of a loop, or it alone.
PlanStep loop_of(std::span<const PlanStep> steps, OpId writer) {
  for (const PlanStep& step : steps) {
    if (step.kind == StepKind::loop && step.first <= writer && writer < step.end()) return step;
  }
  return {StepKind::compute, writer, 1};
}

}  // namespace

std::vector<bool> donated_updates(const Program& program, std::span<const PlanStep> steps) {
  const std::vector<std::vector<OpId>> readers = readers_of(program);
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
    const PlanStep loop = loop_of(steps, writer);
    donated.back() = std::ranges::all_of(readers[input.value], [&](OpId reader) {
      return reader < loop.first || (reader <= writer && is_elementwise(program.kind(reader)));
    });
  }
  return donated;
}

}  // namespace weft
