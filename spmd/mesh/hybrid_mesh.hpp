#pragma once
/// Tiers: which atoms of a mesh stay within a host, and which cross the network.

#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/hybrid_mesh.hpp>
#include <weft/mesh.hpp>

namespace weft {

/// What an atom crosses: shared memory within a host, or the network between hosts.
enum class Tier : std::uint8_t { ici, dcn };
std::string_view to_string(Tier tier) noexcept;
/// What a collective over these atoms crosses.
Tier tier_of(AtomMask atoms, const Mesh& mesh);

/// Host h has the devices from h * chips_per_host() on; in its memory they are chips from 0 on.
int chips_per_host(const Mesh& mesh);
int host_of(const Mesh& mesh, int position);
int chip_on_host(const Mesh& mesh, int position);

/// The tier of each of the mesh's atoms (index 0 unused). Throws as HybridMesh::mesh() does.
std::vector<Tier> atom_tiers(const HybridMesh& hybrid);

}  // namespace weft
