#pragma once
/// FactorRules: the factor rules of a program's ops. Equal ops share one rule, because most ops of
/// a training step, above all the optimizer's, repeat.

#include <cstddef>
#include <unordered_map>

#include "spmd/passes/factors.hpp"

namespace weft {

/// Refers to the program, which must not change or end.
class FactorRules {
 public:
  explicit FactorRules(const Program& program) : rules_(0, Hash{program}, Alike{program}) {}

  /// Stays where it is as long as this lives.
  const FactorRule& of(OpId op);

 private:
  struct Hash {
    const Program& program;
    std::size_t operator()(OpId op) const;
  };
  struct Alike {
    const Program& program;
    bool operator()(OpId a, OpId b) const;
  };
  std::unordered_map<OpId, FactorRule, Hash, Alike> rules_;  // by one op of those that are alike
};

}  // namespace weft
