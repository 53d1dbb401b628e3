// Finds the mean that a loss computes. This analyzes the recorded ops, so that it recognizes a mean
// however the user has written it.

#include <algorithm>
#include <cmath>
#include <optional>

#include "spmd/ops/row.hpp"
#include "spmd/program/element.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

bool carries_gradient(const Program& program, OpId op) {
  return has_gradient(program.kind(op)) && is_floating(program.type(program.result(op)).dtype);
}

/// The kinds of inputs that a value depends on.
struct Sources {
  bool has_data = false;
  bool has_trained = false;  ///< parameters to which a gradient would flow

  bool is_of_data_alone() const { return has_data && !has_trained; }
};
Sources sources_of(const Program& program, ValueId value) {
  enum Seen : char { no, as_value, by_gradient };
  Sources sources;
  std::vector<char> seen(program.num_values(), no);
  std::vector<std::pair<ValueId, Seen>> open{{value, by_gradient}};
  while (!open.empty()) {
    const auto [next, how] = open.back();
    open.pop_back();
    if (seen[next] >= how) continue;
    seen[next] = how;
    const OpId op = program.defining_op(next);
    if (op == kNoId) {
      const auto input = std::ranges::find(program.inputs, next, &ProgramInput::value);
      if (input == program.inputs.end()) continue;
      if (input->kind == InputKind::data) sources.has_data = true;
      if (input->kind == InputKind::param && how == by_gradient) sources.has_trained = true;
      continue;
    }
    const Seen through = carries_gradient(program, op) ? how : as_value;
    for (const ValueId operand : program.op_operands(op)) open.emplace_back(operand, through);
  }
  return sources;
}

Scaling scaling_of(const Program& program, OpId op) {
  return row(program.kind(op)).linear->scaling;
}

std::optional<double> number_of(const Program& program, ValueId value) {
  const ValueId source = picked_from(program, value, Picks::all);
  const OpId op = program.defining_op(source);
  if (op == kNoId || table_of(program.kind(op)) != Form::elements || !program.is_fill(op))
    return {};
  return load_element(program.type(source).dtype,
                      program.const_pool.data() + program.op_attrs(op)[0]);
}

/// Returns how many elements are added up for each element of a sum, or 0 if the value isn't a sum.
double summed_elements(const Program& program, ValueId value) {
  const ValueId source = picked_from(program, value, Picks::all);
  const OpId op = program.defining_op(source);
  if (op == kNoId || program.kind(op) != OpKind::reduce) return 0;
  if (static_cast<ReduceKind>(program.op_attrs(op)[0]) != ReduceKind::add) return 0;
  return static_cast<double>(program.type(program.op_operands(op)[0]).num_elements()) /
         static_cast<double>(program.type(source).num_elements());
}

/// Returns how many elements are added up for a count, times the constant factor of the count, if
/// any.
double counted_elements(const Program& program, ValueId count) {
  const ValueId source = picked_from(program, count, Picks::all);
  const OpId op = program.defining_op(source);
  const bool is_product = op != kNoId && scaling_of(program, op) == Scaling::multiplies;
  if (!is_product) return summed_elements(program, count);
  const auto operands = program.op_operands(op);
  for (const int i : {0, 1}) {
    const auto factor = number_of(program, operands[static_cast<std::size_t>(1 - i)]);
    if (factor) return *factor * summed_elements(program, operands[static_cast<std::size_t>(i)]);
  }
  return 0;
}

/// Returns whether the value is a single number that depends on data only, or a broadcast of such a
/// number.
bool is_number_of_data(const Program& program, ValueId value) {
  const ValueId source = picked_from(program, value, Picks::all);
  return program.type(source).num_elements() == 1 && sources_of(program, source).is_of_data_alone();
}

bool is_quotient(const Program& program, ValueId value) {
  const OpId op = program.defining_op(picked_from(program, value, Picks::all));
  if (op == kNoId) return false;
  const Scaling scaling = scaling_of(program, op);
  return scaling == Scaling::divides || scaling == Scaling::raises;
}

/// Removes the outermost op of a loss if it scales the loss, and notes the factor in `mean`.
/// Returns false if the outermost op doesn't scale.
bool peel(const Program& program, LossMean& mean, ValueId& value) {
  value = picked_from(program, value, Picks::all);
  const OpId op = program.defining_op(value);
  if (op == kNoId) return false;
  const auto operands = program.op_operands(op);
  const auto scale = [&](ValueId scaled, double factor) {
    const double elements = summed_elements(program, scaled);
    if (elements > 0 && std::abs(factor * elements - 1) < 1e-5) mean.elements = elements;
    mean.factor *= factor;
    value = scaled;
    return mean.elements == 0;
  };
  switch (scaling_of(program, op)) {
    case Scaling::negates: return scale(operands[0], -1);
    case Scaling::multiplies:
      if (const auto right = number_of(program, operands[1])) return scale(operands[0], *right);
      if (const auto left = number_of(program, operands[0])) return scale(operands[1], *left);
      return false;
    case Scaling::divides:
      if (const auto by = number_of(program, operands[1])) return scale(operands[0], 1 / *by);
      if (!is_number_of_data(program, operands[1])) return false;
      mean.sum = operands[0];
      mean.count = operands[1];
      mean.elements = counted_elements(program, mean.count);
      return false;
    default: return false;
  }
}

}  // namespace

LossMean loss_mean(const Program& program, ValueId loss, std::uint64_t trace) {
  LossMean mean{.trace = trace, .loss = loss};
  ValueId value = loss;
  while (peel(program, mean, value)) {
  }
  return mean;
}

OpId find_count(const Program& program, ValueId loss) {
  std::vector<bool> reached(program.num_values(), false);
  reached[loss] = true;
  for (OpId op = program.num_ops(); op-- > 0;) {
    if (!reached[program.result(op)] || !carries_gradient(program, op)) continue;
    const auto operands = program.op_operands(op);
    for (const ValueId operand : operands) reached[operand] = true;
    const bool divides = scaling_of(program, op) == Scaling::divides;
    if (!divides && scaling_of(program, op) != Scaling::multiplies) continue;
    for (const int i : {0, 1}) {
      const ValueId number = operands[static_cast<std::size_t>(i)];
      const ValueId scaled = operands[static_cast<std::size_t>(1 - i)];
      const bool may_be = divides ? i == 1 : is_quotient(program, number);
      if (may_be && is_number_of_data(program, number) && sources_of(program, scaled).has_trained) {
        return op;
      }
    }
  }
  return kNoId;
}

}  // namespace weft
