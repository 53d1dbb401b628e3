#pragma once
/// Converts lists of atoms per dim to lists per factor (rules/factor_rule.hpp), and back.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/ops/row.hpp"

namespace weft {

/// Atoms that shard each dim of a tensor, major to minor.
using DimAtoms = std::array<AtomList, kDimCountMax>;

/// The atoms of each factor of a rule.
using FactorAtoms = InplaceVector<AtomList, kFactorCountMax>;

/// The atoms of a tensor's dims, assigned to the factors of a rule.
struct Projection {
  FactorAtoms atoms;
  /// Bit d is set if the last atoms of dim d belong to no factor, because they would divide a
  /// factor unevenly. unproject() then can't restore the dim.
  std::uint8_t overflow_dims = 0;
};

/// Assigns each dim's atoms to its factors, major to minor. When the atoms of a factor cut it into
/// parts of size 1, the following atoms go to the next factor.
Projection project(const FactorRule& rule, const Mesh& mesh, std::size_t tensor,
                   const DimAtoms& dims);
/// Projects a single dim. Returns whether the dim's last atoms belong to no factor.
bool project_dim(const FactorRule& rule, const Mesh& mesh, const DimFactors& factors,
                 AtomList dim_atoms, std::span<AtomList> atoms);
/// Gives each dim the atoms of its factors, which is the inverse of project().
DimAtoms unproject(const FactorRule& rule, std::size_t tensor,
                   std::span<const AtomList> factor_atoms);
/// Returns whether `atoms` cut the factor into parts of size 1. Otherwise the next minor factor of
/// a dim mustn't be cut, because a part of the dim would be a strided view.
bool is_full(const Mesh& mesh, const Factor& factor, AtomList atoms);

}  // namespace weft
