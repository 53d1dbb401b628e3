#pragma once
/// Factors: how the dims of an op's operands and result correspond (Shardy's op sharding rules). One
/// mechanism for all ops: propagation and partitioning read nothing else about an op.

#include <cstdint>
#include <vector>

#include <weft/spmd/program/program.hpp>

namespace weft {

/// pass_through: the op works on each part alone. reduction: parts give partial results.
/// need_replication: the op can't be cut along it.
enum class FactorType : std::uint8_t { pass_through, reduction, need_replication };

struct Factor {
  std::int64_t size = 1;
  FactorType type = FactorType::pass_through;
  ReduceKind reduce_kind = ReduceKind::add;
};

/// dims[tensor][dim] lists factors, major to minor; tensors are the operands, then the result. Sizes
/// multiply to the dim's size.
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<std::vector<std::vector<int>>> dims;
  bool elementwise = false;  ///< elementwise, reshape, transpose: propagated first
};

FactorRule factor_rule(const Program& program, OpId op);

}  // namespace weft
