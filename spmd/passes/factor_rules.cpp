#include <weft/spmd/passes/factor_rules.hpp>

#include <algorithm>

namespace weft {

const FactorRule& FactorRules::of(OpId op) {
  const auto [place, is_new] = rules_.try_emplace(op);
  if (is_new) place->second = factor_rule(rules_.hash_function().program, op);
  return place->second;
}

std::size_t FactorRules::Hash::operator()(OpId op) const {
  auto hash = static_cast<std::size_t>(program.kind(op));
  const auto add = [&](std::int64_t number) {
    hash = (hash ^ static_cast<std::size_t>(number)) * 0x9fb21c651e98df25U;
    hash ^= hash >> 32;
  };
  std::ranges::for_each(program.op_attrs(op), add);
  for (const ValueId operand : program.op_operands(op)) {
    std::ranges::for_each(program.shape(operand), add);
  }
  std::ranges::for_each(program.shape(program.result(op)), add);
  return hash;
}

bool FactorRules::Alike::operator()(OpId a, OpId b) const {
  const auto type = [&](ValueId value) -> const TensorType& { return program.type(value); };
  return program.kind(a) == program.kind(b) &&
         std::ranges::equal(program.op_attrs(a), program.op_attrs(b)) &&
         type(program.result(a)) == type(program.result(b)) &&
         std::ranges::equal(program.op_operands(a), program.op_operands(b), {}, type, type);
}

}  // namespace weft
