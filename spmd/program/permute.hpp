#pragma once
/// Finds the chips that exchange shards in a collective_permute.

#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

namespace weft {

/// Returns the atoms of `from` and `to` in ascending order. Chips exchange shards only within
/// groups of these atoms.
AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to);

/// Returns for each position p the position from which p gets its shard under the layout `to`
/// (atoms per dim). That position has the same shard under the layout `from`. If several positions
/// have it, returns p itself if possible, else the lowest. `from` and `to` must divide every dim
/// into equally many parts.
std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to);

}  // namespace weft
