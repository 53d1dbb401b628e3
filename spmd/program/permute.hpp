#pragma once
/// The chips that exchange shards in a collective_permute.

#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

namespace weft {

/// Returns the atoms of `from` and `to`, ascending. Chips exchange shards only within groups of
/// these atoms.
AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to);

/// Returns, for each position, the position that holds under `from` (atoms per dim) the shard that
/// this one needs under `to`. If several positions hold the shard, it is the position itself if
/// possible, else the lowest. `from` and `to` divide every dim into equally many parts.
std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to);

}  // namespace weft
