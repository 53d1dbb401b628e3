#include "spmd/program/permute.hpp"

#include <algorithm>

namespace weft {

AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to) {
  AtomMask mask = 0;
  for (const AtomList atoms : from) mask = static_cast<AtomMask>(mask | atoms.mask());
  for (const AtomList atoms : to) mask = static_cast<AtomMask>(mask | atoms.mask());
  return mesh.list(mask);
}

std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to) {
  WEFT_CHECK(from.size() == to.size(), from.size(), to.size());
  const AtomList atoms = permute_atoms(mesh, from, to);
  std::vector<int> sources;
  for (int position = 0; position < mesh.size(); ++position) {
    const auto holds_it = [&](int candidate) {
      for (std::size_t dim = 0; dim < from.size(); ++dim) {
        if (mesh.index_in(candidate, from[dim]) != mesh.index_in(position, to[dim])) return false;
      }
      return true;
    };
    int source = position;
    if (!holds_it(position)) {
      // The group is in ascending order, because the atoms are. So the first position found is the
      // lowest.
      const std::vector<int> group = mesh.group(position, atoms);
      const auto found = std::find_if(group.begin(), group.end(), holds_it);
      WEFT_CHECK(found != group.end(), position);
      source = *found;
    }
    sources.push_back(source);
  }
  return sources;
}

}  // namespace weft
