#include "spmd/passes/expand.hpp"

#include <algorithm>

#include "spmd/ops/builder.hpp"
#include "spmd/passes/factors.hpp"

namespace weft {
namespace {

bool is_cut(const Program& program, OpId op, std::span<const Sharding> shardings) {
  if (!is_composite(program.kind(op))) return false;
  const FactorRule rule = factor_rule(program, op);
  const auto operands = program.op_operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t dim = 0; dim < rule.dims[i].size(); ++dim) {
      const bool needs_whole = std::ranges::any_of(rule.dims[i][dim], [&](int factor) {
        return rule.factors[static_cast<std::size_t>(factor)].type == FactorType::need_replication;
      });
      if (needs_whole && !shardings[operands[i]].dims[dim].empty()) return true;
    }
  }
  return false;
}

/// Appends the primitives of a composite whose result is of this dtype.
ValueId primitives(Builder& builder, OpKind kind, std::vector<ValueId> operands, Words attrs,
                   DType dtype) {
  if (!is_half(dtype) || !row(kind).traits->rounds_once) {
    return decompose(builder, kind, operands, attrs);
  }
  for (ValueId& operand : operands) {
    if (is_half(builder.type(operand).dtype)) operand = builder.convert(operand, DType::f32);
  }
  return builder.convert(decompose(builder, kind, operands, attrs), dtype);
}

}  // namespace

std::optional<Program> expand(const Program& program, std::span<const Sharding> shardings) {
  std::vector<bool> cut(program.num_ops());
  for (OpId op = 0; op < program.num_ops(); ++op) cut[op] = is_cut(program, op, shardings);
  if (std::ranges::none_of(cut, [](bool is) { return is; })) return std::nullopt;
  return expand_ops(program, cut);
}

Program expand_ops(const Program& program, const std::vector<bool>& expanded) {
  Program result;
  Builder builder(result);
  result.begin_from(program);
  std::vector<ValueId> value_of(program.num_values(), kNoId);
  for (const ProgramInput& input : program.inputs) {
    value_of[input.value] = result.add_input(program.type(input.value), input.kind, input.name,
                                             input.sharding, input.loc);
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const OpKind kind = program.kind(op);
    const auto attrs = program.op_attrs(op);
    std::vector<ValueId> operands;
    for (const ValueId operand : program.op_operands(op)) operands.push_back(value_of[operand]);
    builder.set_loc(program.op_locs[op]);
    const ValueId value = program.result(op);
    const TensorType& type = program.type(value);
    value_of[value] = expanded[op]
                          ? primitives(builder, kind, operands, attrs, type.dtype)
                          : result.add_op(kind, operands, attrs, type, program.op_locs[op]);
  }
  for (const ProgramOutput& output : program.outputs) {
    result.add_output(value_of[output.value], output.name, output.sharding, output.updates);
  }
  return result;
}

}  // namespace weft
