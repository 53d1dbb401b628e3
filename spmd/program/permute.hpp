#pragma once
/// Finds the chips that exchange shards in a collective_permute.

#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

namespace weft {

/// Returns the atoms of `from` and `to`, ascending. Chips exchange shards only within groups of
/// these atoms.
AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to);

/// Returns for each position p the position from which p gets its shard under `to` (atoms per dim):
/// a position that holds the same shard under `from`. If several do, it is p itself if possible,
/// else the lowest. `from` and `to` divide every dim into equally many parts.
std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to);

}  // namespace weft
