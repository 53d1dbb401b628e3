#include "spmd/plan/step_cost.hpp"

#include <algorithm>
#include <bit>

#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/plan/shared.hpp"
#include "spmd/fusion/spread.hpp"

namespace weft {
namespace {

/// Distinct values, in the order in which they are added.
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

/// How many elements of an operand the windows of one dim meet, all together.
std::int64_t meetings_along(const WindowDim& window, std::int64_t size, std::int64_t windows) {
  std::int64_t count = 0;
  for (std::int64_t o = 0; o < windows; ++o) {
    for (std::int64_t k = 0; k < window.size; ++k) {
      if (element_under(window, o, k, size) >= 0) ++count;
    }
  }
  return count;
}

std::int64_t product_flops(const Program& program, OpId op) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  std::int64_t summed = 1;
  for (const std::int64_t dim : dot_dims(program.op_attrs(op)).lhs_contracting) {
    summed *= lhs[static_cast<int>(dim)];
  }
  return 2 * summed * program.shape(program.result(op)).num_elements();
}

/// Without products with padding and with the gaps between elements.
std::int64_t convolution_flops(const Program& program, OpId op) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  const Shape& rhs = program.shape(program.op_operands(op)[1]);
  const Shape& result = program.shape(program.result(op));
  const Convolution c = convolution_of(program.op_attrs(op), rhs);
  std::int64_t flops = 2 * lhs[static_cast<int>(c.lhs[0])] * lhs[static_cast<int>(c.lhs[1])] *
                       rhs[static_cast<int>(c.rhs[1])];
  if (!c.group.empty()) flops *= lhs[static_cast<int>(c.group[0])];
  for (std::size_t i = 0; i < c.window.size(); ++i) {
    flops *= meetings_along(c.window[i], lhs[static_cast<int>(c.lhs[2 + i])],
                            result[static_cast<int>(c.result[2 + i])]);
  }
  return flops;
}

/// Elements that windows meet, of all dims together.
std::int64_t meetings_of(const Program& program, OpId op, const Shape& windows) {
  const Shape& x = program.shape(program.op_operands(op)[0]);
  const WindowReduction reduction = window_reduction_of(program.op_attrs(op));
  std::int64_t count = 1;
  for (int dim = 0; dim < x.size(); ++dim) {
    count *= meetings_along(reduction.dims[static_cast<std::size_t>(dim)], x[dim], windows[dim]);
  }
  return count;
}

/// Pairs of a query and a key that it sees. Where `chips` share the queries, the mean of them.
std::int64_t pairs_of(const Program& program, OpId op, std::int64_t chips) {
  const Shape& q = program.shape(program.op_operands(op)[0]);
  const std::int64_t keys = program.shape(program.op_operands(op)[1])[2];
  const std::int64_t heads = q[0] * q[1];
  if (!attention_form_of(program.op_attrs(op)).causal) return heads * q[2] * keys;
  const std::int64_t queries = q[2] * chips;
  const std::int64_t rising = std::min(queries, keys);  // query i sees min(i + 1, keys)
  return heads * (rising * (rising + 1) / 2 + (queries - rising) * keys) / chips;
}

/// Forward the products of queries and keys and of weights and values; the gradient makes the
/// weights again, and has four more products.
std::int64_t attention_flops(const Program& program, OpId op, const Mesh& mesh) {
  const auto operands = program.op_operands(op);
  const std::int64_t key = program.shape(operands[1])[3];
  const std::int64_t value = program.shape(operands[2])[3];
  if (program.kind(op) == OpKind::attention_grad) {
    return 2 * pairs_of(program, op, 1) * (3 * key + 2 * value);
  }
  const auto bits = static_cast<std::uint64_t>(program.op_attrs(op)[2]);
  return 2 * pairs_of(program, op, mesh.count(AtomList::from_bits(bits))) * (key + value);
}

std::int64_t flops_of(const Program& program, OpId op, const Mesh& mesh);

/// Of the primitives of a composite.
std::int64_t composite_flops(const Program& program, OpId op, const Mesh& mesh) {
  Program primitives;
  std::vector<ValueId> operands;
  for (const ValueId operand : program.op_operands(op)) {
    operands.push_back(primitives.add_input(program.type(operand), InputKind::data, "", {}));
  }
  Builder builder(primitives);
  decompose(builder, program.kind(op), operands, program.op_attrs(op));
  std::int64_t flops = 0;
  for (OpId i = 0; i < primitives.num_ops(); ++i) flops += flops_of(primitives, i, mesh);
  return flops;
}

std::int64_t group_of(const Program& program, OpId op, const Mesh& mesh) {
  return mesh.count(AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[0])));
}

std::int64_t flops_of(const Program& program, OpId op, const Mesh& mesh) {
  const OpKind kind = program.kind(op);
  const auto operands = program.op_operands(op);
  const auto elements = [&](ValueId value) { return program.type(value).num_elements(); };
  switch (kind) {
    case OpKind::convert: return 0;
    case OpKind::dot_general: return product_flops(program, op);
    case OpKind::convolution: return convolution_flops(program, op);
    case OpKind::attention:
    case OpKind::attention_grad: return attention_flops(program, op, mesh);
    case OpKind::reduce: return elements(operands[0]);
    case OpKind::reduce_window: return meetings_of(program, op, program.shape(program.result(op)));
    case OpKind::select_and_scatter:
      return meetings_of(program, op, program.shape(operands[1])) + elements(operands[1]);
    case OpKind::scatter:
    case OpKind::scatter_along: return elements(operands[1]);
    case OpKind::linear_recurrence: return 2 * elements(operands[0]);
    case OpKind::argsort: {
      const Shape& shape = program.shape(operands[0]);
      const auto row = static_cast<std::uint64_t>(shape[shape.size() - 1]);
      const auto comparisons = static_cast<std::int64_t>(row < 2 ? 0 : std::bit_width(row - 1));
      if (operands.size() == 1) return comparisons * elements(operands[0]);
      // The others are passed over twice.
      return comparisons * elements(operands[1]) + 2 * elements(operands[0]);
    }
    // Each chip reduces its part of what all have.
    case OpKind::all_reduce: {
      const std::int64_t group = group_of(program, op, mesh);
      return elements(operands[0]) * (group - 1) / group;
    }
    case OpKind::reduce_scatter:
      return elements(program.result(op)) * (group_of(program, op, mesh) - 1);
    default: break;
  }
  if (is_composite(kind)) return composite_flops(program, op, mesh);
  return is_elementwise(kind) ? elements(program.result(op)) : 0;
}

/// The operand of which the op reads a part as large as its result; -1: it reads all of them.
int operand_read_in_part(OpKind kind) {
  switch (kind) {
    case OpKind::slice:
    case OpKind::dynamic_slice:
    case OpKind::all_slice:
    case OpKind::gather:
    case OpKind::take_along: return 0;
    case OpKind::item: return 1;
    default: return -1;
  }
}

std::int64_t read_bytes_of(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  const auto operands = program.op_operands(op);
  const std::int64_t result = program.type(program.result(op)).bytes();
  // One of the branches has made it; and what a carry was before is of no use.
  if (kind == OpKind::merge) return result;
  if (kind == OpKind::next) return operands[1] == operands[2] ? 0 : result;
  const int in_part = operand_read_in_part(kind);
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

/// Whether chips only meet in the op: what it moves is written, or read, where it lies.
bool is_in_place(const Plan& plan, OpId op) {
  if (!is_collective(plan.program.kind(op))) return false;
  return plan.slots[plan.program.op_operands(op)[0]].place == Place::part ||
         is_added_by_loops(plan.program, plan.slots, plan.program.result(op));
}

/// A loop over elementwise ops reads and writes only what has a place in memory.
StepCost loop_cost(const Plan& plan, const PlanStep& step, const Mesh& mesh) {
  const Program& program = plan.program;
  const auto bytes = [&](ValueId value) { return program.type(value).bytes(); };
  const auto is_tiled = [&](ValueId value) { return plan.slots[value].place == Place::tile; };
  StepCost cost{.dtype = program.type(program.result(step.first)).dtype};
  Values seen;
  const std::int64_t elements = program.type(program.result(step.first)).num_elements();
  for (OpId op = step.first; op < step.end(); ++op) {
    const ValueId result = program.result(op);
    // Fills and spreads between the ops of the loop.
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
      // One of the chips that have it in common; each stores its own part.
      if (plan.slots[program.result(op)].place == Place::shared) {
        cost.written_bytes += of_op.read_bytes - of_op.written_bytes;
      }
    }
    if (step.kind != StepKind::collective) continue;
    const auto group = static_cast<int>(mesh.count(summary->atoms));
    cost.traffic_bytes =
        static_cast<std::int64_t>(traffic_bytes(summary->kind, summary->bytes, group));
    ++summary;
  }
  return costs;
}

std::vector<std::int64_t> step_counts(const Plan& plan) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> around{1};  // of each loop that is open, innermost last
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
