#pragma once
/// The shards that a collective_permute exchanges.

#include <span>
#include <vector>

#include <weft/mesh.hpp>

namespace weft {

/// The atoms of `from` and `to`, ascending: chips exchange shards only within groups of these.
AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to);

/// For each position, the position whose shard under `from` (atoms per dim) is its own shard under
/// `to`. If several hold it: itself if it is among them, else the lowest. `from` and `to` divide
/// every dim into equally many parts.
std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to);

}  // namespace weft
