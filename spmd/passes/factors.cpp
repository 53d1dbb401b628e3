#include "spmd/passes/factors.hpp"

namespace weft {

Projection project(const FactorRule& rule, const Mesh& mesh, std::size_t tensor,
                   const DimAtoms& dims) {
  Projection projection{.atoms = FactorAtoms(rule.factors.size())};
  for (std::size_t dim = 0; dim < rule.dims[tensor].size(); ++dim) {
    if (project_dim(rule, mesh, rule.dims[tensor][dim], dims[dim], projection.atoms)) {
      projection.overflow_dims = static_cast<std::uint8_t>(projection.overflow_dims | (1U << dim));
    }
  }
  return projection;
}

bool project_dim(const FactorRule& rule, const Mesh& mesh, const DimFactors& factors,
                 AtomList dim_atoms, std::span<AtomList> atoms) {
  int taken = 0;
  for (const std::size_t id : factors) {
    const Factor& factor = rule.factors[id];
    std::int64_t parts = 1;
    for (; taken < dim_atoms.size() && parts < factor.size; ++taken) {
      parts *= mesh.atom_size(dim_atoms[taken]);
      if (factor.size % parts != 0) break;
      atoms[id].push_back(dim_atoms[taken]);
    }
    if (parts != factor.size) break;
  }
  return taken < dim_atoms.size();
}

DimAtoms unproject(const FactorRule& rule, std::size_t tensor,
                   std::span<const AtomList> factor_atoms) {
  DimAtoms dims{};
  for (std::size_t dim = 0; dim < rule.dims[tensor].size(); ++dim) {
    for (const std::size_t factor : rule.dims[tensor][dim]) dims[dim].append(factor_atoms[factor]);
  }
  return dims;
}

bool is_full(const Mesh& mesh, const Factor& factor, AtomList atoms) {
  return mesh.count(atoms) == factor.size;
}

}  // namespace weft
