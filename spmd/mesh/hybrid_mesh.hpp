#pragma once
/// HybridMesh: a mesh whose axes are split between chips of one host and hosts (torch_xla's
/// HybridMesh): an axis's size is dcn[i] * ici[i], its dcn part major.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

struct HybridMesh {
  std::vector<std::int64_t> ici;  ///< chips per axis within a host (shared memory)
  std::vector<std::int64_t> dcn;  ///< hosts per axis (network)
  std::vector<std::string> axis_names;

  /// Throws mesh_mismatch where the three lists differ in length, invalid_argument for a size
  /// outside 1..kChipCountMax.
  void validate() const;
  /// Chips and hosts: products of ici and of dcn.
  std::int64_t chips_per_host() const;
  std::int64_t num_hosts() const;
  /// The flat mesh: shape dcn[i] * ici[i]; ids of host h's devices begin with h * chips_per_host().
  /// It knows its dcn atoms, so that partial results are reduced within hosts first. Throws
  /// unavailable if some axis's prime factors can't be divided so that no atom crosses both tiers.
  Mesh mesh() const;
  /// The tier of each of the mesh's atoms (index 0 unused). Throws as mesh() does.
  std::vector<Tier> atom_tiers() const;
};

}  // namespace weft
