#pragma once
/// FactorRule: how the dims of an op's operands and result correspond (Shardy's op sharding rules).
/// Propagation and partitioning read nothing else about how an op may be cut.

#include <cstdint>
#include <utility>
#include <vector>

#include <weft/type.hpp>

#include "spmd/base/inplace_vector.hpp"
#include "spmd/mesh/sharding.hpp"

namespace weft {

/// pass_through: the op works on each part alone. reduction: parts give partial results.
/// need_replication: the op can't be cut along the factor.
enum class FactorType : std::uint8_t { pass_through, reduction, need_replication };

struct Factor {
  std::int64_t size = 1;
  FactorType type = FactorType::pass_through;
  ReduceKind reduce_kind = ReduceKind::add;
};

/// The most factors that a rule can have, and that a dim can consist of.
inline constexpr std::size_t kFactorCountMax = 32;
inline constexpr std::size_t kDimFactorCountMax = 15;

using DimFactors = InplaceVector<std::uint8_t, kDimFactorCountMax>;

/// dims[tensor][dim] lists the dim's factors, major to minor; tensors are the operands, then the
/// result. The factors' sizes multiply to the dim's size. A dim without factors can't be cut. A
/// factor occurs at most once in a tensor.
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<InplaceVector<DimFactors, kDimCountMax>> dims;
  bool elementwise = false;  ///< elementwise, reshape, transpose: propagated first
};

/// A rule under construction.
class RuleMaker {
 public:
  void add_tensor(const Shape& shape) {
    rule_.dims.emplace_back(static_cast<std::size_t>(shape.size()));
  }
  /// Returns the factor's number, which is below kFactorCountMax.
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
