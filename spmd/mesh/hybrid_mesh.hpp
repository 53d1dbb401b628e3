#pragma once
/// Finds out which atoms of a mesh stay within a host, and which cross the network between hosts.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/hybrid_mesh.hpp>
#include <weft/sharding/mesh.hpp>

namespace weft {

/// The medium by which chips along an atom communicate: shared memory within a host (ici), or the
/// network between hosts (dcn).
enum class Tier : std::uint8_t { ici, dcn };
std::string_view to_string(Tier tier) noexcept;
/// Returns dcn if a collective over these atoms crosses the network, else ici.
Tier tier_of(AtomMask atoms, const Mesh& mesh);

/// Tell on which host a chip is. Each host has chips_per_host() devices, and the device ids of host
/// h begin with h * chips_per_host(). chip_on_host() numbers the chips of each host from 0.
int chips_per_host(const Mesh& mesh);
int host_of(const Mesh& mesh, int position);
int chip_on_host(const Mesh& mesh, int position);
/// Returns whether two chips have the same place on different hosts. A collective between hosts
/// that lower_tiers() has made is one of twins.
bool are_twins(const Mesh& mesh, int position, int other);
/// Returns the atoms in `atoms` that are within a host, numbered from 1 as in a mesh of this host
/// alone.
AtomMask mask_on_host(const Mesh& mesh, AtomMask atoms);

/// Returns the number of hosts into which each axis is divided (HybridMesh::dcn), or an empty list
/// if the mesh is on one host.
std::vector<std::int64_t> dcn_shape(const Mesh& mesh);
/// Returns text such as " of (2,1) hosts"; "" for a mesh on one host.
std::string hosts_text(const Mesh& mesh);
/// Returns whether a collective over these atoms would meet within hosts and between them. The pass
/// lower_tiers() replaces such collectives.
bool spans_tiers(AtomMask atoms, const Mesh& mesh);
/// Returns a mesh with the same chips and atoms, but with all chips on one host, whose memory they
/// share.
Mesh in_one_memory(const Mesh& mesh);

/// Returns the tier of each of the mesh's atoms (index 0 is unused). Throws like
/// HybridMesh::mesh().
std::vector<Tier> atom_tiers(const HybridMesh& hybrid);

}  // namespace weft
