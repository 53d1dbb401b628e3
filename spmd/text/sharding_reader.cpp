#include "spmd/text/sharding_reader.hpp"

namespace weft {
namespace {

/// Reads `"data"` or `"data":0`.
AtomList read_axis_or_atom(TextReader& reader, const Mesh& mesh) {
  const std::size_t place = reader.place();
  const std::string name = reader.string();
  const int axis = mesh.axis_index(name);
  if (axis < 0) reader.fail_at(place, "no axis \"{}\"; the mesh is {}", name, mesh.to_string());
  const AtomList whole = mesh.axis_atoms(axis);
  if (!reader.accept(":")) return whole;
  const std::int64_t number = reader.integer();
  if (number < 0 || number >= whole.size()) {
    reader.fail_at(place, "axis \"{}\" has {} atoms", name, whole.size());
  }
  return AtomList{whole[static_cast<int>(number)]};
}

/// Reads a list of atoms. If `open` isn't null, stores in it whether there is a `?` before the
/// closing brace.
AtomList read_atoms(TextReader& reader, const Mesh& mesh, bool* open) {
  AtomList all;
  reader.expect("{");
  const auto ends = [&] {
    if (open != nullptr && reader.accept("?")) *open = true;
    return reader.accept("}");
  };
  while (!ends()) {
    if (!all.empty()) reader.expect(",");
    const std::size_t place = reader.place();
    const AtomList more = read_axis_or_atom(reader, mesh);
    if ((all.mask() & more.mask()) != 0) reader.fail_at(place, "the axis is given twice");
    all.append(more);
  }
  return all;
}

void read_priorities(TextReader& reader, const Mesh& mesh, Sharding& sharding) {
  reader.expect("{");
  do {
    const AtomList atoms = read_axis_or_atom(reader, mesh);
    reader.expect("=");
    const std::size_t place = reader.place();
    const std::int32_t priority = reader.small_integer();
    if (priority < 0 || priority > 15) reader.fail_at(place, "priorities are 0..15");
    for (int i = 0; i < atoms.size(); ++i) sharding.set_priority(atoms[i], priority);
  } while (reader.accept(","));
  reader.expect("}");
}

}  // namespace

AtomList read_atoms(TextReader& reader, const Mesh& mesh) {
  return read_atoms(reader, mesh, nullptr);
}

Sharding read_sharding(TextReader& reader, const Mesh& mesh, int num_dims) {
  Sharding sharding;
  const std::size_t place = reader.place();
  reader.expect("[");
  for (int dim = 0; dim < num_dims; ++dim) {
    if (dim > 0 && !reader.accept(",")) {
      reader.fail_at(place, "the sharding has {} dims; it needs {}", dim, num_dims);
    }
    bool open = false;
    sharding.dims[static_cast<std::size_t>(dim)] = read_atoms(reader, mesh, &open);
    if (open) sharding.open_mask = static_cast<std::uint8_t>(sharding.open_mask | 1U << dim);
  }
  if (!reader.accept("]")) reader.fail_at(place, "the sharding has more than {} dims", num_dims);
  if (reader.accept("unreduced")) sharding.unreduced = read_atoms(reader, mesh).mask();
  if (reader.accept("reduce")) {
    reader.expect("=");
    sharding.reduce_kind = reader.enumerator(ReduceKind::min, "reduce kind");
  }
  if (reader.accept("replicated")) sharding.replicated = read_atoms(reader, mesh).mask();
  if (reader.accept("priority")) read_priorities(reader, mesh, sharding);
  return sharding;
}

}  // namespace weft
