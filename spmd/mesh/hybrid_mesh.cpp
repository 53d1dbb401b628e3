#include "spmd/mesh/hybrid_mesh.hpp"

#include <functional>
#include <numeric>

#include <fmt/ranges.h>

namespace weft {
namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

void check_sizes(std::string_view field, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] > kChipCountMax) {
      fail(Errc::invalid_argument, "HybridMesh: {}[{}] is {}; a size must be 1..{}", field, i,
           sizes[i], kChipCountMax);
    }
  }
}

}  // namespace

void HybridMesh::validate() const {
  if (ici.size() != dcn.size() || ici.size() != axis_names.size()) {
    fail(
        Errc::mesh_mismatch,
        "HybridMesh: ici ({}) has {} entries, dcn ({}) has {} and axis_names has {}; give each one "
        "entry per axis (1 where an axis doesn't use a tier)",
        fmt::join(ici, ","), ici.size(), fmt::join(dcn, ","), dcn.size(), axis_names.size());
  }
  check_sizes("ici", ici);
  check_sizes("dcn", dcn);
}

std::string_view to_string(Tier tier) noexcept { return tier == Tier::dcn ? "dcn" : "ici"; }

Tier tier_of(AtomMask atoms, const Mesh& mesh) {
  return (atoms & mesh.dcn_atoms()) != 0 ? Tier::dcn : Tier::ici;
}

int chips_per_host(const Mesh& mesh) {
  return mesh.size() / static_cast<int>(mesh.count(mesh.dcn_atoms()));
}

int host_of(const Mesh& mesh, int position) {
  return mesh.device_at(position) / chips_per_host(mesh);
}

int chip_on_host(const Mesh& mesh, int position) {
  return mesh.device_at(position) % chips_per_host(mesh);
}

bool are_twins(const Mesh& mesh, int position, int other) {
  return host_of(mesh, position) != host_of(mesh, other) &&
         chip_on_host(mesh, position) == chip_on_host(mesh, other);
}

AtomMask mask_on_host(const Mesh& mesh, AtomMask atoms) {
  unsigned mask = 0;
  unsigned next = 2;
  for (int atom = 1; atom <= mesh.num_atoms(); ++atom) {
    if ((mesh.dcn_atoms() >> atom & 1) != 0) continue;
    if ((atoms >> atom & 1) != 0) mask |= next;
    next <<= 1;
  }
  return static_cast<AtomMask>(mask);
}

std::vector<std::int64_t> dcn_shape(const Mesh& mesh) {
  if (mesh.dcn_atoms() == 0) return {};
  std::vector<std::int64_t> hosts;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const AtomMask atoms = mesh.axis_atoms(axis).mask();
    hosts.push_back(mesh.count(static_cast<AtomMask>(atoms & mesh.dcn_atoms())));
  }
  return hosts;
}

std::string hosts_text(const Mesh& mesh) {
  if (mesh.dcn_atoms() == 0) return {};
  return fmt::format(" of ({}) hosts", fmt::join(dcn_shape(mesh), ","));
}

bool spans_tiers(AtomMask atoms, const Mesh& mesh) {
  return (atoms & mesh.dcn_atoms()) != 0 && (atoms & ~mesh.dcn_atoms()) != 0;
}

Mesh in_one_memory(const Mesh& mesh) { return mesh.with_dcn_atoms(0); }

std::int64_t HybridMesh::chips_per_host() const { return product(ici); }

std::int64_t HybridMesh::num_hosts() const { return product(dcn); }

Mesh HybridMesh::mesh() const {
  validate();
  std::vector<std::int64_t> shape(ici.size());
  for (std::size_t axis = 0; axis < ici.size(); ++axis) shape[axis] = dcn[axis] * ici[axis];
  const Mesh flat(shape, axis_names);

  std::vector<int> device_ids;
  device_ids.reserve(static_cast<std::size_t>(flat.size()));
  for (int position = 0; position < flat.size(); ++position) {
    const std::vector<std::int64_t> coords = flat.coords(position);
    std::int64_t host = 0;
    std::int64_t chip = 0;
    for (std::size_t axis = 0; axis < ici.size(); ++axis) {
      host = host * dcn[axis] + coords[axis] / ici[axis];
      chip = chip * ici[axis] + coords[axis] % ici[axis];
    }
    device_ids.push_back(static_cast<int>(host * chips_per_host() + chip));
  }
  return Mesh(shape, axis_names, std::move(device_ids), dcn);
}

std::vector<Tier> atom_tiers(const HybridMesh& hybrid) {
  const Mesh mesh = hybrid.mesh();
  std::vector<Tier> tiers(1, Tier::ici);
  for (int atom = 1; atom <= mesh.num_atoms(); ++atom) {
    tiers.push_back(tier_of(static_cast<AtomMask>(1U << atom), mesh));
  }
  return tiers;
}

}  // namespace weft
