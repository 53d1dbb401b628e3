#include <weft/spmd/passes/rule_maker.hpp>

namespace weft {
namespace {

/// Of the operands and the result.
std::vector<const Shape*> shapes_of(const Program& program, OpId op) {
  std::vector<const Shape*> tensors;
  for (const ValueId operand : program.op_operands(op)) tensors.push_back(&program.shape(operand));
  tensors.push_back(&program.shape(program.result(op)));
  return tensors;
}

/// Every dim passes through but that of a row: the last of the first operand, which tensors with
/// one element for each row haven't got.
FactorRule row_rule(const Program& program, OpId op) {
  const std::vector<const Shape*> tensors = shapes_of(program, op);
  RuleMaker rule;
  for (const Shape* shape : tensors) rule.add_tensor(*shape);
  const Shape& rows = *tensors[0];
  for (int dim = 0; dim < rows.size(); ++dim) {
    const bool is_last = dim + 1 == rows.size();
    const int factor = rule.add_factor(
        rows[dim], is_last ? FactorType::need_replication : FactorType::pass_through);
    for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
      if (dim < tensors[tensor]->size()) rule.put(tensor, dim, factor);
    }
  }
  return rule.take(false);
}

/// Batches and heads pass through, and in an attention the queries too. In an attention_grad a
/// chip with some of the queries would have a part of the sums for all keys and values, but all of
/// those for its queries: one result can't be both.
FactorRule attention_rule(const Program& program, OpId op) {
  constexpr int kQueries = 2;
  const std::vector<const Shape*> tensors = shapes_of(program, op);
  const bool is_grad = program.kind(op) == OpKind::attention_grad;
  RuleMaker rule;
  for (const Shape* shape : tensors) rule.add_tensor(*shape);
  const int batch = rule.add_factor((*tensors[0])[0]);
  const int head = rule.add_factor((*tensors[0])[1]);
  const int queries = rule.add_factor(
      (*tensors[0])[kQueries], is_grad ? FactorType::need_replication : FactorType::pass_through);
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const bool has_queries = tensor == 0 || (tensor > 2 && !(is_grad && tensor == 5));
    const auto whole = [&](int dim) {
      return rule.add_factor((*tensors[tensor])[dim], FactorType::need_replication);
    };
    rule.put(tensor, 0, batch);
    rule.put(tensor, 1, head);
    rule.put(tensor, kQueries, has_queries ? queries : whole(kQueries));
    rule.put(tensor, 3, whole(3));
  }
  return rule.take(false);
}

}  // namespace

FactorRule composite_rule(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  if (kind == OpKind::attention || kind == OpKind::attention_grad) {
    return attention_rule(program, op);
  }
  return row_rule(program, op);
}

}  // namespace weft
