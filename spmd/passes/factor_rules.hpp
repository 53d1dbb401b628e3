#pragma once
/// FactorRules: the factor rules of a program's ops. Equal ops share one rule, because most ops of
/// a training step, such as those of the optimizer, occur many times.

#include <cstddef>
#include <unordered_map>

#include "spmd/passes/factors.hpp"

namespace weft {

/// Keeps a reference to the program, which must outlive this object and must not change.
class FactorRules {
 public:
  explicit FactorRules(const Program& program) : rules_(0, Hash{program}, Alike{program}) {}

  /// Returns the op's rule. The reference is valid as long as this object.
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
  std::unordered_map<OpId, FactorRule, Hash, Alike> rules_;  // by one op of each set of equal ops
};

}  // namespace weft
