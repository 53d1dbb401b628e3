#pragma once
/// Lists every mesh of at most 8 chips with at most 3 axes, which may have size 1. There are few
/// enough of these meshes to test all of them.

#include <cstdint>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

namespace weft::testing {

inline void append_meshes(std::vector<std::int64_t> shape, std::int64_t chips,
                          std::vector<Mesh>& meshes) {
  const std::vector<std::string> names{"x", "y", "z"};
  meshes.emplace_back(shape, std::vector<std::string>(
                                 names.begin(), names.begin() + static_cast<int>(shape.size())));
  if (shape.size() == names.size()) return;
  for (std::int64_t size = 1; size * chips <= 8; ++size) {
    std::vector<std::int64_t> longer = shape;
    longer.push_back(size);
    append_meshes(longer, chips * size, meshes);
  }
}

inline std::vector<Mesh> small_meshes() {
  std::vector<Mesh> meshes;
  append_meshes({}, 1, meshes);
  return meshes;
}

/// Appends every list of distinct atoms of the mesh that begins with `list`.
inline void append_atom_lists(const Mesh& mesh, AtomList list, std::vector<AtomList>& lists) {
  lists.push_back(list);
  for (int atom = 1; atom <= mesh.num_atoms(); ++atom) {
    if (list.contains(static_cast<Atom>(atom))) continue;
    AtomList longer = list;
    longer.push_back(static_cast<Atom>(atom));
    append_atom_lists(mesh, longer, lists);
  }
}

inline std::vector<AtomList> atom_lists(const Mesh& mesh) {
  std::vector<AtomList> lists;
  append_atom_lists(mesh, {}, lists);
  return lists;
}

}  // namespace weft::testing
