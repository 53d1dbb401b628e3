#include "spmd/plan/step_cost.hpp"

#include <algorithm>

#include "spmd/control/loops.hpp"
#include "spmd/fusion/spread.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/shared.hpp"

namespace weft {
namespace {

/// A list of distinct values, in the order in which they were added.
class Values {
 public:
  bool add(ValueId value) {
    if (std::ranges::find(values_, value) != values_.end()) return false;
    values_.push_back(value);
    return true;
  }

 private:
  std::vector<ValueId> values_;
};

std::int64_t read_bytes_of(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  const auto operands = program.op_operands(op);
  const std::int64_t result = program.type(program.result(op)).bytes();
  // A merge reads the value of one branch only, and a `next` doesn't read the old value of its
  // carry.
  if (kind == OpKind::merge) return result;
  if (kind == OpKind::next) return operands[1] == operands[2] ? 0 : result;
  const int in_part = row(kind).traits->reads_part_of;
  Values read;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!read.add(operands[i])) continue;
    const std::int64_t whole = program.type(operands[i]).bytes();
    bytes += static_cast<int>(i) == in_part ? std::min(result, whole) : whole;
  }
  return bytes;
}

std::int64_t written_bytes_of(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  switch (program.kind(op)) {
    case OpKind::stack: return program.type(operands[1]).bytes();
    case OpKind::next: return read_bytes_of(program, op);
    default: return program.type(program.result(op)).bytes();
  }
}

DType dtype_of(const Program& program, OpId op) {
  const auto operands = program.op_operands(op);
  return program.type(operands.empty() ? program.result(op) : operands.front()).dtype;
}

/// Returns whether the chips only synchronize in this collective, because the data is written or
/// read in place.
bool is_in_place(const Plan& plan, OpId op) {
  if (!is_collective(plan.program.kind(op))) return false;
  return plan.slots[plan.program.op_operands(op)[0]].place == Place::part ||
         is_added_by_loops(plan.program, plan.slots, plan.program.result(op));
}

/// Returns the cost of a loop of elementwise ops. Counts only values in memory as read or written.
StepCost loop_cost(const Plan& plan, const PlanStep& step, const Mesh& mesh) {
  const Program& program = plan.program;
  const auto bytes = [&](ValueId value) { return program.type(value).bytes(); };
  const auto is_tiled = [&](ValueId value) { return plan.slots[value].place == Place::tile; };
  StepCost cost{.dtype = program.type(program.result(step.first)).dtype};
  Values seen;
  const std::int64_t elements = program.type(program.result(step.first)).num_elements();
  for (OpId op = step.first; op < step.end(); ++op) {
    const ValueId result = program.result(op);
    // Fills and spreads between the ops of the loop are skipped.
    if (!is_elementwise(program.kind(op)) || program.type(result).num_elements() != elements) {
      continue;
    }
    for (const ValueId operand : program.op_operands(op)) {
      if (!seen.add(operand)) continue;
      if (!is_tiled(operand)) {
        cost.read_bytes += bytes(operand);
        continue;
      }
      const OpId maker = program.defining_op(operand);
      if (is_added_by_loops(program, plan.slots, operand)) {
        cost.flops += flops_of(program, maker, mesh);
        cost.read_bytes += read_bytes_of(program, maker);
        continue;
      }
      if (!is_made_by_loops(program, maker)) continue;
      for (const ValueId source : program.op_operands(maker)) {
        if (seen.add(source)) cost.read_bytes += std::min(bytes(source), bytes(operand));
      }
    }
    seen.add(result);
    cost.flops += flops_of(program, op, mesh);
    if (!is_tiled(result)) cost.written_bytes += bytes(result);
  }
  return cost;
}

}  // namespace

void StepCost::add(const StepCost& other, std::int64_t times) {
  flops += times * other.flops;
  read_bytes += times * other.read_bytes;
  written_bytes += times * other.written_bytes;
  traffic_bytes += times * other.traffic_bytes;
  dcn_bytes += times * other.dcn_bytes;
}

StepCost op_cost(const Program& program, OpId op, const Mesh& mesh) {
  return {.flops = flops_of(program, op, mesh),
          .read_bytes = read_bytes_of(program, op),
          .written_bytes = written_bytes_of(program, op),
          .dtype = dtype_of(program, op)};
}

std::vector<StepCost> step_costs(const Plan& plan, const Mesh& mesh) {
  const Program& program = plan.program;
  const std::vector<CollectiveSummary> summaries = collectives(plan, mesh);
  auto summary = summaries.begin();
  std::vector<StepCost> costs;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::loop) {
      costs.push_back(loop_cost(plan, step, mesh));
      continue;
    }
    StepCost& cost = costs.emplace_back();
    for (OpId op = step.first; op < step.end(); ++op) {
      if (is_in_place(plan, op)) {
        cost.dtype = dtype_of(program, op);
        continue;
      }
      const StepCost of_op = op_cost(program, op, mesh);
      if (op == step.first) cost.dtype = of_op.dtype;
      cost.add(of_op);
      // Several chips share the result, and each of them stores only its own part.
      if (plan.slots[program.result(op)].place == Place::shared) {
        cost.written_bytes += of_op.read_bytes - of_op.written_bytes;
      }
    }
    if (step.kind != StepKind::collective) continue;
    const auto group = static_cast<int>(mesh.count(summary->atoms));
    cost.traffic_bytes =
        static_cast<std::int64_t>(traffic_bytes(summary->kind, summary->bytes, group));
    cost.dcn_bytes = summary->dcn_bytes;
    ++summary;
  }
  return costs;
}

std::vector<std::int64_t> step_counts(const Plan& plan) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> around{1};  // how often the steps of each open loop run, innermost last
  for (const PlanStep& step : plan.steps) {
    counts.push_back(around.back());
    if (step.kind == StepKind::begin) {
      const std::int64_t length = length_of_loop(plan.program, step.first);
      around.push_back(around.back() * std::max<std::int64_t>(length, 1));
    }
    if (step.kind == StepKind::repeat) around.pop_back();
  }
  return counts;
}

StepCost run_cost(const Plan& plan, const Mesh& mesh) {
  const std::vector<std::int64_t> counts = step_counts(plan);
  const std::vector<StepCost> costs = step_costs(plan, mesh);
  StepCost sum;
  for (std::size_t i = 0; i < costs.size(); ++i) sum.add(costs[i], counts[i]);
  return sum;
}

double traffic_bytes(OpKind kind, std::int64_t bytes, int group) {
  if (group < 2) return 0;
  const double part = static_cast<double>(group - 1) / group;
  const double size = static_cast<double>(bytes);
  return kind == OpKind::all_reduce ? 2 * part * size : part * size;
}

}  // namespace weft
