#include <weft/sharding/chip.hpp>

#include <algorithm>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "chips/engine/chip_collectives.hpp"

namespace weft {
namespace {

bool overlap(ConstElementSpan a, ConstElementSpan b) {
  const auto end = [](ConstElementSpan span) {
    return span.data() + span.size() * byte_size(span.dtype());
  };
  const std::less<const std::byte*> before;
  return before(a.data(), end(b)) && before(b.data(), end(a));
}

/// Completes `call` with its buffers, dtype and counts, and returns it. Throws invalid_argument if
/// the sizes or dtypes of the buffers don't fit the kind of call, or if the buffers overlap.
ChipCall checked(ChipCall call, const Mesh& mesh, ConstElementSpan source,
                 ElementSpan destination) {
  call.group_size = mesh.count(call.atoms);
  const bool swaps = call.kind == CollectiveKind::all_to_all;
  if (swaps || call.kind == CollectiveKind::reduce_scatter) call.parts_in_source = call.group_size;
  if (swaps || call.kind == CollectiveKind::all_gather) call.parts_in_destination = call.group_size;
  call.count = source.size() / call.parts_in_source;
  if (call.count * call.parts_in_source != source.size()) {
    fail(Errc::invalid_argument,
         "{} at {}: {} elements can't be cut in equal parts for the {} chips of the group",
         to_string(call.kind), call.site(), source.size(), call.group_size);
  }
  const std::int64_t results = call.count * call.parts_in_destination;
  if (destination.size() != results || destination.dtype() != source.dtype()) {
    fail(Errc::invalid_argument,
         "{} at {}: of {} elements of {}, the {} chips of the group get {} of {} each, but there "
         "is room for {} of {}",
         to_string(call.kind), call.site(), source.size(), to_string(source.dtype()),
         call.group_size, results, to_string(source.dtype()), destination.size(),
         to_string(destination.dtype()));
  }
  if (!call.is_in_place() && overlap(source, destination)) {
    fail(Errc::invalid_argument, "{} at {}: operand and result overlap", to_string(call.kind),
         call.site());
  }
  call.dtype = source.dtype();
  call.source = source.data();
  call.destination = destination.data();
  return call;
}

}  // namespace

std::string ChipCall::site() const {
  const std::string_view path = where.file_name();
  return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), where.line());
}

CollectiveCall ChipCall::in_arena(std::uint64_t from_offset, std::uint64_t to_offset) const {
  return {.kind = kind,
          .atoms = atoms,
          .reduce = reduce,
          .dtype = dtype,
          .source = from_offset,
          .destination = to_offset,
          .from = {from.begin(), from.end()}};
}

void ChipCall::set_count(CollectiveCall& call, std::int64_t piece) const {
  call.count = piece;
  if (kind == CollectiveKind::all_to_all) call.shape = {piece * group_size};
}

std::byte* Chip::address(std::uint64_t offset) const { return collectives_.address(offset); }

AtomList Chip::atoms_of(const Axes& axes) const {
  const std::span<const std::string_view> names = axes.names();
  AtomList atoms;
  if (names.empty()) {
    for (int axis = 0; axis < mesh_.num_axes(); ++axis) atoms.append(mesh_.axis_atoms(axis));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!mesh_.has_axis(names[i])) mesh_.axis_size(names[i]);  // throws; its message lists the axes
    const auto before = names.first(i);
    if (std::ranges::find(before, names[i]) != before.end()) {
      fail(Errc::invalid_argument, "axes: \"{}\" is given twice", names[i]);
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
  collectives_.carry_out({.atoms = atoms_of(axes), .where = where});
}

void Chip::all_reduce(ElementSpan values, const Axes& axes, ReduceKind reduce, Location where) {
  collectives_.carry_out(checked({.kind = CollectiveKind::all_reduce,
                                  .atoms = atoms_of(axes),
                                  .reduce = reduce,
                                  .where = where},
                                 mesh_, values, values));
}

void Chip::all_gather(ConstElementSpan part, ElementSpan whole, const Axes& axes, Location where) {
  collectives_.carry_out(
      checked({.kind = CollectiveKind::all_gather, .atoms = atoms_of(axes), .where = where}, mesh_,
              part, whole));
}

void Chip::reduce_scatter(ConstElementSpan whole, ElementSpan part, const Axes& axes,
                          ReduceKind reduce, Location where) {
  collectives_.carry_out(checked({.kind = CollectiveKind::reduce_scatter,
                                  .atoms = atoms_of(axes),
                                  .reduce = reduce,
                                  .where = where},
                                 mesh_, whole, part));
}

void Chip::all_to_all(ConstElementSpan parts, ElementSpan received, const Axes& axes,
                      Location where) {
  collectives_.carry_out(
      checked({.kind = CollectiveKind::all_to_all, .atoms = atoms_of(axes), .where = where}, mesh_,
              parts, received));
}

void Chip::broadcast(ElementSpan values, int root, const Axes& axes, Location where) {
  collectives_.carry_out(checked({.kind = CollectiveKind::broadcast,
                                  .atoms = atoms_of(axes),
                                  .from = {&root, 1},
                                  .where = where},
                                 mesh_, values, values));
}

void Chip::permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
                   const Axes& axes, Location where) {
  collectives_.carry_out(checked(
      {.kind = CollectiveKind::permute, .atoms = atoms_of(axes), .from = sources, .where = where},
      mesh_, values, received));
}

}  // namespace weft
