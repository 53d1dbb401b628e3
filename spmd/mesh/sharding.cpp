#include "spmd/mesh/sharding.hpp"

#include <fmt/ranges.h>

#include "spmd/base/nearest.hpp"

namespace weft {
namespace {

/// Returns the names of the atoms, each followed by `suffix(atom)`. If all atoms of an axis are
/// adjacent and have the same suffix, writes the axis as one name.
template <typename Suffix>
std::string atoms_text(const Mesh& mesh, AtomList atoms, Suffix suffix) {
  std::string text;
  for (int i = 0; i < atoms.size();) {
    const int axis = mesh.atom_axis(atoms[i]);
    const AtomList whole = mesh.axis_atoms(axis);
    bool is_whole = whole.is_prefix_of(atoms.suffix_from(i));
    for (int j = 1; is_whole && j < whole.size(); ++j)
      is_whole = suffix(whole[j]) == suffix(whole[0]);
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ",
                        mesh.axis_names()[static_cast<std::size_t>(axis)]);
    if (!is_whole) text += fmt::format(":{}", atoms[i] - whole[0]);
    text += suffix(atoms[i]);
    i += is_whole ? whole.size() : 1;
  }
  return text;
}

std::string atoms_text(const Mesh& mesh, AtomList atoms) {
  return atoms_text(mesh, atoms, [](Atom) { return std::string(); });
}

}  // namespace

Sharding Sharding::open(int num_dims) {
  Sharding sharding;
  sharding.open_mask = static_cast<std::uint8_t>((1U << num_dims) - 1);
  return sharding;
}

Sharding Sharding::from_spec(const Mesh& mesh, const PartitionSpec& spec,
                             std::span<const std::int64_t> shape, std::string_view what,
                             int priority) {
  if (spec.dims().size() != shape.size() || shape.size() > kDimCountMax) {
    fail(Errc::invalid_argument,
         "{}: PartitionSpec {} has {} entries but the shape [{}] has {} dims; give one entry per "
         "dim, and {{}} for a dim that isn't sharded (at most {} dims)",
         what, spec.to_string(), spec.num_dims(), fmt::join(shape, ","), shape.size(),
         kDimCountMax);
  }
  if (priority < 0 || priority > 15) {
    fail(Errc::invalid_argument, "{}: priority {} is outside 0..15", what, priority);
  }
  Sharding sharding;
  std::vector<bool> axis_used(static_cast<std::size_t>(mesh.num_axes()), false);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    for (const std::string& name : spec.dims()[dim].names()) {
      const int axis = mesh.axis_index(name);
      if (axis < 0) {
        const auto near = nearest_names(name, mesh.axis_names());
        fail(Errc::invalid_argument, "{}: PartitionSpec {} names axis \"{}\"; the mesh is {}{}",
             what, spec.to_string(), name, mesh.to_string(),
             near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near.front()));
      }
      if (axis_used[static_cast<std::size_t>(axis)]) {
        fail(Errc::invalid_argument,
             "{}: PartitionSpec {} uses axis \"{}\" twice; an axis may shard only one dim", what,
             spec.to_string(), name);
      }
      axis_used[static_cast<std::size_t>(axis)] = true;
      const AtomList atoms = mesh.axis_atoms(axis);
      sharding.dims[dim].append(atoms);
      for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], priority);
    }
  }
  return sharding;
}

AtomMask Sharding::used() const {
  AtomMask mask = 0;
  for (const AtomList atoms : dims) mask = static_cast<AtomMask>(mask | atoms.mask());
  return mask;
}

void Sharding::set_priority(Atom atom, int priority) {
  const int shift = 4 * atom;
  provenance &= ~(std::uint64_t{15} << shift);
  provenance |= static_cast<std::uint64_t>(priority) << shift;
}

Sharding Sharding::without(AtomMask atoms) const {
  Sharding rest;
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    int kept = 0;
    while (kept < dims[dim].size() && ((atoms >> dims[dim][kept]) & 1U) == 0) ++kept;
    rest.dims[dim] = dims[dim].prefix(kept);
  }
  return rest;
}

Sharding Sharding::even(const Mesh& mesh, std::span<const std::int64_t> shape) const {
  Sharding rest = closed(dims);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    AtomList& atoms = rest.dims[dim];
    while (shape[dim] % mesh.count(atoms) != 0) atoms = atoms.prefix(atoms.size() - 1);
  }
  return rest;
}

bool Sharding::same_layout(const Sharding& other) const {
  return dims == other.dims && unreduced == other.unreduced &&
         (unreduced == 0 || reduce_kind == other.reduce_kind);
}

std::array<std::int64_t, kDimCountMax> Sharding::local_shape(
    const Mesh& mesh, std::span<const std::int64_t> shape) const {
  std::array<std::int64_t, kDimCountMax> local{};
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const std::int64_t parts = mesh.count(dims[dim]);
    local[dim] = (shape[dim] + parts - 1) / parts;
  }
  return local;
}

std::array<std::int64_t, kDimCountMax> Sharding::offsets(
    const Mesh& mesh, int position, std::span<const std::int64_t> shape) const {
  std::array<std::int64_t, kDimCountMax> offsets = local_shape(mesh, shape);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    offsets[dim] *= mesh.index_in(position, dims[dim]);
  }
  return offsets;
}

std::vector<int> Sharding::replicas(const Mesh& mesh, int position) const {
  const int apart = used() | unreduced | mesh.dcn_atoms();
  return mesh.group(position, mesh.list(static_cast<AtomMask>(mesh.all_atoms() & ~apart)));
}

std::string Sharding::to_string(const Mesh& mesh, int num_dims) const {
  std::string text = "[";
  for (int dim = 0; dim < num_dims; ++dim) {
    text +=
        fmt::format("{}{{{}{}}}", dim == 0 ? "" : ", ",
                    atoms_text(mesh, dims[static_cast<std::size_t>(dim)]), is_open(dim) ? "?" : "");
  }
  text += ']';
  if (unreduced != 0)
    text += fmt::format(" unreduced{{{}}}", atoms_text(mesh, mesh.list(unreduced)));
  if (reduce_kind != ReduceKind::add) {
    text += fmt::format(" reduce={}", weft::to_string(reduce_kind));
  }
  if (replicated != 0) {
    text += fmt::format(" replicated{{{}}}", atoms_text(mesh, mesh.list(replicated)));
  }
  AtomMask ranked = 0;
  for (Atom atom = 1; atom <= kAtomCountMax; ++atom) {
    if (this->priority(atom) != 0) ranked = static_cast<AtomMask>(ranked | (1U << atom));
  }
  if (ranked != 0) {
    const auto suffix = [&](Atom atom) { return fmt::format("={}", this->priority(atom)); };
    text += fmt::format(" priority{{{}}}", atoms_text(mesh, mesh.list(ranked), suffix));
  }
  return text;
}

}  // namespace weft
