#include <weft/chip.hpp>

#include <algorithm>

#include <weft/error.hpp>

#include "actors/device/cpu/chip_collectives.hpp"

namespace weft {

std::byte* Chip::address(std::uint64_t offset) const { return collectives_.address(offset); }

AtomList Chip::atoms_of(const Axes& axes) const {
  const std::span<const std::string_view> names = axes.names();
  AtomList atoms;
  if (names.empty()) {
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) atoms.append(mesh_.axis_atoms(axis));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!mesh_.has_axis(names[i])) mesh_.axis_size(names[i]);  // throws; the message lists the axes
    const auto before = names.first(i);
    if (std::ranges::find(before, names[i]) != before.end()) {
      fail(Errc::invalid_argument, "axes: \"{}\" is named twice", names[i]);
    }
    atoms.append(mesh_.axis_atoms(mesh_.axis_index(names[i])));
  }
  return atoms;
}

int Chip::group_size(const Axes& axes) const {
  return static_cast<int>(mesh_.count(atoms_of(axes)));
}

int Chip::group_index(const Axes& axes) const {
  return static_cast<int>(mesh_.index_in(position_, atoms_of(axes)));
}

void Chip::barrier(const Axes& axes, Location where) {
  CollectiveCall barrier{.kind = CollectiveKind::barrier, .atoms = atoms_of(axes)};
  collectives_.call(barrier, where);
}

void Chip::all_reduce(ElementSpan values, const Axes& axes, ReduceKind reduce, Location where) {
  collectives_.carry_out(
      {.kind = CollectiveKind::all_reduce, .atoms = atoms_of(axes), .reduce = reduce}, values,
      values, where);
}

void Chip::all_gather(ConstElementSpan part, ElementSpan whole, const Axes& axes, Location where) {
  collectives_.carry_out({.kind = CollectiveKind::all_gather, .atoms = atoms_of(axes)}, part, whole,
                         where);
}

void Chip::reduce_scatter(ConstElementSpan whole, ElementSpan part, const Axes& axes,
                          ReduceKind reduce, Location where) {
  collectives_.carry_out(
      {.kind = CollectiveKind::reduce_scatter, .atoms = atoms_of(axes), .reduce = reduce}, whole,
      part, where);
}

void Chip::all_to_all(ConstElementSpan parts, ElementSpan received, const Axes& axes,
                      Location where) {
  collectives_.carry_out({.kind = CollectiveKind::all_to_all, .atoms = atoms_of(axes)}, parts,
                         received, where);
}

void Chip::broadcast(ElementSpan values, int root, const Axes& axes, Location where) {
  collectives_.carry_out(
      {.kind = CollectiveKind::broadcast, .atoms = atoms_of(axes), .from = {root}}, values, values,
      where);
}

void Chip::permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
                   const Axes& axes, Location where) {
  collectives_.carry_out({.kind = CollectiveKind::permute,
                          .atoms = atoms_of(axes),
                          .from = {sources.begin(), sources.end()}},
                         values, received, where);
}

}  // namespace weft
