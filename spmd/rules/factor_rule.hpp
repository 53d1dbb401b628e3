#pragma once
/// FactorRule: the correspondence between the dims of an op's operands and of its result (Shardy's
/// op sharding rules). Propagation and partitioning decide by the rule alone how to shard an op.

#include <cstdint>
#include <utility>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/base/inplace_vector.hpp"
#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The effect of sharding a factor. pass_through: the op works on each part alone. reduction: each
/// part gives a partial result. need_replication: the factor can't be sharded.
enum class FactorType : std::uint8_t { pass_through, reduction, need_replication };

struct Factor {
  std::int64_t size = 1;
  FactorType type = FactorType::pass_through;
  ReduceKind reduce_kind = ReduceKind::add;
};

/// The largest number of factors of a rule, and of one dim.
inline constexpr std::size_t kFactorCountMax = 32;
inline constexpr std::size_t kDimFactorCountMax = 15;

using DimFactors = InplaceVector<std::uint8_t, kDimFactorCountMax>;

/// The factor rule of an op. dims[tensor][dim] has the factors of a dim, major to minor. The
/// tensors are the operands, followed by the result. The product of the factors' sizes is the dim's
/// size. A dim without factors can't be sharded. A factor occurs at most once in a tensor.
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<InplaceVector<DimFactors, kDimCountMax>> dims;
  bool elementwise = false;  ///< elementwise, reshape or transpose; propagated first
};

/// Builds a FactorRule.
class RuleMaker {
 public:
  void add_tensor(const Shape& shape) {
    rule_.dims.emplace_back(static_cast<std::size_t>(shape.size()));
  }
  /// Adds a factor and returns its number, which is below kFactorCountMax.
  int add_factor(std::int64_t size, FactorType type = FactorType::pass_through,
                 ReduceKind reduce_kind = ReduceKind::add) {
    WEFT_CHECK(rule_.factors.size() < kFactorCountMax, rule_.factors.size());
    rule_.factors.push_back({size, type, reduce_kind});
    return static_cast<int>(rule_.factors.size()) - 1;
  }
  void put(std::size_t tensor, std::int64_t dim, int factor) {
    rule_.dims[tensor][static_cast<std::size_t>(dim)].push_back(static_cast<std::uint8_t>(factor));
  }
  FactorRule take() { return std::move(rule_); }

 private:
  FactorRule rule_;
};

}  // namespace weft
