#include <weft/spmd/passes/rule_maker.hpp>
#include <weft/spmd/program/custom_rule.hpp>

namespace weft {
namespace {

FactorType type_of(CustomRule::Kind kind) {
  switch (kind) {
    case CustomRule::Kind::pass_through: return FactorType::pass_through;
    case CustomRule::Kind::reduction: return FactorType::reduction;
    case CustomRule::Kind::need_replication: break;
  }
  return FactorType::need_replication;
}

}  // namespace

FactorRule custom_rule(const Program& program, OpId op) {
  const CustomRule custom = parse_custom_rule(program.custom_target(op).rule);
  const auto operands = program.op_operands(op);
  std::vector<int> made(custom.factors.size(), -1);
  RuleMaker rule;
  for (std::size_t tensor = 0; tensor < custom.dims.size(); ++tensor) {
    const bool is_operand = tensor < operands.size();
    const Shape& shape = program.shape(is_operand ? operands[tensor] : program.result(op));
    rule.add_tensor(shape);
    for (int dim = 0; dim < shape.size(); ++dim) {
      const std::size_t factor = custom.dims[tensor][static_cast<std::size_t>(dim)];
      if (made[factor] < 0) {
        made[factor] = rule.add_factor(shape[dim], type_of(custom.factors[factor].kind));
      }
      rule.put(tensor, dim, made[factor]);
    }
  }
  return rule.take(false);
}

}  // namespace weft
