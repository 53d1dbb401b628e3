#pragma once
/// What a collective_permute moves.

#include <span>
#include <vector>

#include <weft/mesh.hpp>

namespace weft {

/// The atoms of `from` and `to`, ascending: chips exchange shards only within groups of these.
AtomList permute_atoms(const Mesh& mesh, std::span<const AtomList> from,
                       std::span<const AtomList> to);

/// For each position the one whose shard under `from` (atoms per dim) is what this position holds
/// under `to`; where several hold it, itself if it is among them, else the lowest. `from` and `to`
/// divide every dim into equally many parts.
std::vector<int> permute_sources(const Mesh& mesh, std::span<const AtomList> from,
                                 std::span<const AtomList> to);

}  // namespace weft
