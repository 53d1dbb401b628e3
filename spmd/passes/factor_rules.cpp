#include "spmd/passes/factor_rules.hpp"

#include <algorithm>

#include "spmd/program/word_hash.hpp"

namespace weft {

const FactorRule& FactorRules::of(OpId op) {
  const auto [place, is_new] = rules_.try_emplace(op);
  if (is_new) place->second = factor_rule(rules_.hash_function().program, op);
  return place->second;
}

std::size_t FactorRules::Hash::operator()(OpId op) const {
  WordHash hash;
  hash.add(program.kind(op));
  hash.add_all(program.op_attrs(op));
  for (const ValueId operand : program.op_operands(op)) {
    hash.add_all<std::int64_t>(program.shape(operand));
  }
  hash.add_all<std::int64_t>(program.shape(program.result(op)));
  return hash.value();
}

bool FactorRules::Alike::operator()(OpId a, OpId b) const {
  const auto type = [&](ValueId value) -> const TensorType& { return program.type(value); };
  return program.kind(a) == program.kind(b) &&
         std::ranges::equal(program.op_attrs(a), program.op_attrs(b)) &&
         type(program.result(a)) == type(program.result(b)) &&
         std::ranges::equal(program.op_operands(a), program.op_operands(b), {}, type, type);
}

}  // namespace weft
