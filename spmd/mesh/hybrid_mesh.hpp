#pragma once
/// Finds out which atoms of a mesh stay within a host, and which cross the network between hosts.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/hybrid_mesh.hpp>
#include <weft/sharding/mesh.hpp>

namespace weft {

/// The medium that an atom crosses: shared memory within a host (ici), or the network between hosts
/// (dcn).
enum class Tier : std::uint8_t { ici, dcn };
std::string_view to_string(Tier tier) noexcept;
/// Returns dcn if a collective over these atoms crosses the network, else ici.
Tier tier_of(AtomMask atoms, const Mesh& mesh);

/// Each host has chips_per_host() devices. The device ids of host h begin with h *
/// chips_per_host(). chip_on_host() numbers the chips of each host from 0.
int chips_per_host(const Mesh& mesh);
int host_of(const Mesh& mesh, int position);
int chip_on_host(const Mesh& mesh, int position);
/// Returns the atoms as a host's memory numbers them: only those within the host, from 1.
AtomMask mask_on_host(const Mesh& mesh, AtomMask atoms);

/// Returns the number of hosts into which each axis is divided, as HybridMesh::dcn; empty if the
/// mesh is on one host.
std::vector<std::int64_t> dcn_shape(const Mesh& mesh);
/// Returns text such as " of (2,1) hosts"; "" for a mesh on one host.
std::string hosts_text(const Mesh& mesh);
/// Returns whether a collective over these atoms would meet within hosts and between them. The pass
/// lower_tiers() replaces such collectives.
bool spans_tiers(AtomMask atoms, const Mesh& mesh);
/// Returns the mesh with the same chips and atoms when all chips are on one host, and share its
/// memory.
Mesh in_one_memory(const Mesh& mesh);

/// Returns the tier of each of the mesh's atoms (index 0 is unused). Throws as HybridMesh::mesh()
/// does.
std::vector<Tier> atom_tiers(const HybridMesh& hybrid);

}  // namespace weft
