#pragma once
/// Factors: how the dims of an op's operands and result correspond (Shardy's op sharding rules).
/// One mechanism for all ops: propagation and partitioning read nothing else about an op.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/spmd/inplace_vector.hpp>
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

/// More factors than any rule has, and than any dim consists of.
inline constexpr std::size_t kFactorCountMax = 32;
inline constexpr std::size_t kDimFactorCountMax = 15;

using DimFactors = InplaceVector<std::uint8_t, kDimFactorCountMax>;

/// dims[tensor][dim] lists factors, major to minor; tensors are the operands, then the result.
/// Sizes multiply to the dim's size; a dim without factors can't be cut. A factor occurs at most
/// once in a tensor.
struct FactorRule {
  std::vector<Factor> factors;
  std::vector<InplaceVector<DimFactors, kDimCountMax>> dims;
  bool elementwise = false;  ///< elementwise, reshape, transpose: propagated first
};

/// The rule of an op of a global program; collectives have none.
FactorRule factor_rule(const Program& program, OpId op);
/// Of an elementwise op with one operand, of this shape.
FactorRule identity_rule(const Shape& shape);

/// Atoms that shard each dim of a tensor, major to minor.
using DimAtoms = std::array<AtomList, kDimCountMax>;

/// One list per factor of a rule.
using FactorAtoms = InplaceVector<AtomList, kFactorCountMax>;

/// What the dims' atoms are in terms of factors.
struct Projection {
  FactorAtoms atoms;
  /// Bit d: the last atoms of dim d fit no factor (they would cut one unevenly), so that the dim
  /// can't be rebuilt from factors.
  std::uint8_t overflow_dims = 0;
};

/// Hands each dim's atoms out to its factors, major to minor; the next factor's turn comes when one
/// is full.
Projection project(const FactorRule& rule, const Mesh& mesh, std::size_t tensor,
                   const DimAtoms& dims);
/// Of one dim: fills in its factors, and returns whether the last atoms fit none.
bool project_dim(const FactorRule& rule, const Mesh& mesh, const DimFactors& factors,
                 AtomList dim_atoms, std::span<AtomList> atoms);
/// The inverse: each dim gets the atoms of its factors.
DimAtoms unproject(const FactorRule& rule, std::size_t tensor,
                   std::span<const AtomList> factor_atoms);
/// Whether `atoms` cut the factor into parts of size 1: only then may a factor minor to it in a dim
/// be cut, as a part would be a strided view otherwise.
bool is_full(const Mesh& mesh, const Factor& factor, AtomList atoms);

}  // namespace weft
