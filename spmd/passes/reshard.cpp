#include "spmd/passes/reshard.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

AtomMask without(AtomMask mask, AtomMask removed) { return static_cast<AtomMask>(mask & ~removed); }

bool contains(AtomMask mask, Atom atom) { return (mask >> atom) & 1U; }

AtomList concatenated(AtomList first, AtomList second) {
  first.append(second);
  return first;
}

/// Returns the last `count` atoms.
AtomList suffix(AtomList atoms, int count) { return atoms.suffix_from(atoms.size() - count); }

/// Builds the steps that lead from a layout to a target layout.
class Route {
 public:
  Route(const Mesh& mesh, const Sharding& from, const Sharding& to, AtomMask held)
      : mesh_(&mesh),
        at_(from),
        to_(to),
        held_(without(held, static_cast<AtomMask>(from.used() | to.used()))) {}

  const std::vector<ReshardStep>& steps() const { return steps_; }

  void reduce() {
    while (slice() || reduce_scatter()) {
    }
    const AtomMask rest = pending();
    if (rest == 0) return;
    at_.unreduced = to_.unreduced;
    push(OpKind::all_reduce, mesh_->list(rest));
  }

  void move() {
    while (slice() || all_to_all() || gather_unwanted() || gather_any()) {
    }
    WEFT_CHECK(at_.same_layout(to_), at_.to_string(*mesh_, kDimCountMax),
               to_.to_string(*mesh_, kDimCountMax));
  }

  /// Adds a collective_permute that replaces atoms of the dims by atoms of the target, while the
  /// number of parts of each dim stays the same. Returns false if no atom can be replaced.
  bool permute() {
    const auto dims = permuted_dims();
    if (dims == at_.dims) return false;
    at_.dims = dims;
    push(OpKind::collective_permute, {});
    return true;
  }

 private:
  AtomMask pending() const { return without(at_.unreduced, to_.unreduced); }

  /// Returns the number of atoms of the dim after its common prefix with the target's dim.
  int excess(std::size_t dim) const {
    return at_.dims[dim].size() - at_.dims[dim].common_prefix(to_.dims[dim]);
  }

  /// Returns the atoms that must be appended to the dim to get the target's, up to the first that
  /// isn't `wanted`. Returns none if other atoms of the dim must be removed first.
  template <typename Wanted>
  AtomList next_atoms(std::size_t dim, Wanted wanted) const {
    AtomList run;
    if (excess(dim) > 0) return run;
    const AtomList next = to_.dims[dim].suffix_from(at_.dims[dim].size());
    for (int i = 0; i < next.size() && wanted(next[i]); ++i) run.push_back(next[i]);
    return run;
  }

  bool slice() {
    const auto busy = static_cast<AtomMask>(at_.used() | at_.unreduced);
    return append_to_some_dim(OpKind::all_slice, [&](Atom atom) { return !contains(busy, atom); });
  }

  bool reduce_scatter() {
    const AtomMask mask = pending();
    return append_to_some_dim(OpKind::reduce_scatter,
                              [&](Atom atom) { return contains(mask, atom); });
  }

  template <typename Wanted>
  bool append_to_some_dim(OpKind kind, Wanted wanted) {
    for (std::size_t dim = 0; dim < at_.dims.size(); ++dim) {
      const AtomList run = next_atoms(dim, wanted);
      if (run.empty()) continue;
      at_.dims[dim].append(run);
      at_.unreduced = without(at_.unreduced, run.mask());
      push(kind, run, static_cast<int>(dim));
      return true;
    }
    return false;
  }

  /// Moves atoms from the end of one dim to the end of another dim, where the target has them.
  bool all_to_all() {
    for (std::size_t from = 0; from < at_.dims.size(); ++from) {
      for (int count = excess(from); count > 0; --count) {
        const AtomList moved = suffix(at_.dims[from], count);
        for (std::size_t to = 0; to < at_.dims.size(); ++to) {
          if (to == from) continue;
          const AtomList joined = concatenated(at_.dims[to], moved);
          if (!joined.is_prefix_of(to_.dims[to])) continue;
          at_.dims[from] = at_.dims[from].prefix(at_.dims[from].size() - count);
          at_.dims[to] = joined;
          push(OpKind::all_to_all, moved, static_cast<int>(to), static_cast<int>(from));
          return true;
        }
      }
    }
    return false;
  }

  /// Gathers atoms at the end of some dim that are in no dim of the target.
  bool gather_unwanted() {
    const AtomMask wanted = to_.used();
    for (std::size_t dim = 0; dim < at_.dims.size(); ++dim) {
      const AtomList atoms = at_.dims[dim];
      int count = 0;
      while (count < excess(dim) && !contains(wanted, atoms[atoms.size() - 1 - count])) ++count;
      if (count > 0) return gather(dim, count);
    }
    return false;
  }

  /// Gathers the last atom of the first dim whose atoms aren't a prefix of the target's. Returns
  /// false if there is no such dim.
  bool gather_any() {
    for (std::size_t dim = 0; dim < at_.dims.size(); ++dim) {
      if (excess(dim) > 0) return gather(dim, 1);
    }
    return false;
  }

  bool gather(std::size_t dim, int count) {
    AtomList gathered = suffix(at_.dims[dim], count);
    at_.dims[dim] = at_.dims[dim].prefix(at_.dims[dim].size() - count);
    if (!steps_.empty() && steps_.back().kind == OpKind::all_gather &&
        steps_.back().dim == static_cast<int>(dim)) {
      gathered.append(steps_.back().atoms);
      steps_.pop_back();
    }
    push(OpKind::all_gather, gathered, static_cast<int>(dim));
    return true;
  }

  /// Returns a layout with the same number of parts in each dim, whose dims have as long a common
  /// prefix with the target's as possible. Atoms that belong in other dims come last, so that an
  /// all_to_all can move them.
  std::array<AtomList, kDimCountMax> permuted_dims() const {
    std::array<AtomList, kDimCountMax> kept{};
    // By dim: the sizes of the atoms that the dim still has to get.
    std::array<std::vector<std::int64_t>, kDimCountMax> sizes;
    auto busy = static_cast<AtomMask>(at_.unreduced | held_);
    const auto place = [&](std::size_t dim, Atom atom, AtomList& list) {
      const auto size = std::ranges::find(sizes[dim], mesh_->atom_size(atom));
      if (contains(busy, atom) || size == sizes[dim].end()) return false;
      sizes[dim].erase(size);
      list.push_back(atom);
      busy = static_cast<AtomMask>(busy | (1U << atom));
      return true;
    };
    for (std::size_t dim = 0; dim < kept.size(); ++dim) {
      for (int i = 0; i < at_.dims[dim].size(); ++i) {
        sizes[dim].push_back(mesh_->atom_size(at_.dims[dim][i]));
      }
      for (int i = 0; i < to_.dims[dim].size(); ++i) {
        if (!place(dim, to_.dims[dim][i], kept[dim])) break;
      }
    }
    std::array<AtomList, kDimCountMax> rest{};
    for (std::size_t dim = 0; dim < rest.size(); ++dim) {
      for (int i = 0; i < at_.dims[dim].size(); ++i) place(dim, at_.dims[dim][i], rest[dim]);
    }
    for (std::size_t dim = 0; dim < rest.size(); ++dim) {
      for (int atom = 1; atom <= mesh_->num_atoms(); ++atom) {
        place(dim, static_cast<Atom>(atom), rest[dim]);
      }
      WEFT_CHECK(sizes[dim].empty(), dim);
      const AtomMask wanted = to_.used();
      for (const bool pass : {false, true}) {
        for (int i = 0; i < rest[dim].size(); ++i) {
          if (contains(wanted, rest[dim][i]) == pass) kept[dim].push_back(rest[dim][i]);
        }
      }
    }
    return kept;
  }

  void push(OpKind kind, AtomList atoms, int dim = -1, int concat_dim = -1) {
    steps_.push_back({kind, atoms, dim, concat_dim, at_});
  }

  const Mesh* mesh_;
  Sharding at_;
  Sharding to_;
  AtomMask held_;
  std::vector<ReshardStep> steps_;
};

/// Returns the cost of a collective. If it is over both tiers, counts the collectives by which
/// lower_tiers() replaces it.
std::int64_t step_cost(const Mesh& mesh, const TensorType& type, const Sharding& from,
                       const ReshardStep& step) {
  const std::int64_t before = type.bytes() / mesh.count(from.used());
  const std::int64_t after = type.bytes() / mesh.count(step.after.used());
  AtomMask atoms = step.atoms.mask();
  if (step.kind == OpKind::collective_permute) {
    for (std::size_t dim = 0; dim < from.dims.size(); ++dim) {
      if (from.dims[dim] == step.after.dims[dim]) continue;
      atoms = static_cast<AtomMask>(atoms | from.dims[dim].mask() | step.after.dims[dim].mask());
    }
  }
  const std::int64_t hosts = mesh.count(static_cast<AtomMask>(atoms & mesh.dcn_atoms()));
  const std::int64_t chips = mesh.count(without(atoms, mesh.dcn_atoms()));
  const auto moved = [](std::int64_t bytes, std::int64_t parts) { return bytes - bytes / parts; };
  std::int64_t ici = 0;
  std::int64_t dcn = 0;
  switch (step.kind) {
    case OpKind::all_reduce:
      ici = 2 * moved(before, chips);
      dcn = 2 * moved(before / chips, hosts);
      break;
    case OpKind::reduce_scatter:
      ici = moved(before, chips);
      dcn = before / chips - after;
      break;
    case OpKind::all_gather:
      ici = after - before * hosts;
      dcn = before * hosts - before;
      break;
    case OpKind::all_to_all:
      ici = moved(before, chips);
      dcn = moved(before, hosts);
      break;
    default:
      WEFT_CHECK(step.kind == OpKind::collective_permute, to_string(step.kind));
      (hosts > 1 ? dcn : ici) = before;
      break;
  }
  const bool meets_within_hosts = chips > 1 && step.kind != OpKind::collective_permute;
  if (hosts == 1) return ici + kCollectiveCost;
  return ici + (meets_within_hosts ? kCollectiveCost : 0) + kNetworkCost * (dcn + kCollectiveCost);
}

}  // namespace

std::vector<ReshardStep> reshard_steps(const Mesh& mesh, const TensorType& type,
                                       const Sharding& from, const Sharding& to, AtomMask held) {
  WEFT_CHECK(without(to.unreduced, from.unreduced) == 0, from.unreduced, to.unreduced);
  if (from.same_layout(to)) return {};
  Route straight(mesh, from, to, held);
  straight.reduce();
  Route permuted = straight;
  straight.move();
  if (!permuted.permute()) return straight.steps();
  permuted.move();
  // If both routes cost the same, the permuted one is used, because it needs less memory.
  const bool cheaper = reshard_cost(mesh, type, from, permuted.steps()) <=
                       reshard_cost(mesh, type, from, straight.steps());
  return cheaper ? permuted.steps() : straight.steps();
}

std::int64_t reshard_cost(const Mesh& mesh, const TensorType& type, const Sharding& from,
                          const std::vector<ReshardStep>& steps) {
  std::int64_t cost = 0;
  Sharding before = from;
  for (const ReshardStep& step : steps) {
    if (is_collective(step.kind)) cost += step_cost(mesh, type, before, step);
    before = step.after;
  }
  return cost;
}

CheapestReshard cheapest_reshard(const Mesh& mesh, const TensorType& type,
                                 std::span<const Sharding> layouts, const Sharding& to,
                                 AtomMask held) {
  std::optional<CheapestReshard> cheapest;
  std::int64_t lowest = 0;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (without(to.unreduced, layouts[i].unreduced) != 0) continue;
    auto steps = reshard_steps(mesh, type, layouts[i], to, held);
    const std::int64_t cost = reshard_cost(mesh, type, layouts[i], steps);
    if (cheapest && cost >= lowest) continue;
    cheapest = {i, std::move(steps)};
    lowest = cost;
  }
  WEFT_CHECK(cheapest.has_value(), layouts.size());
  return *std::move(cheapest);
}

ValueId add_reshard(Builder& builder, const Mesh& mesh, const ReshardStep& step,
                    const Sharding& from, ValueId value) {
  switch (step.kind) {
    case OpKind::all_slice: return builder.all_slice(mesh, value, step.atoms, step.dim);
    case OpKind::all_reduce: return builder.all_reduce(mesh, value, step.atoms, from.reduce_kind);
    case OpKind::all_gather: return builder.all_gather(mesh, value, step.atoms, step.dim);
    case OpKind::reduce_scatter:
      return builder.reduce_scatter(mesh, value, step.atoms, from.reduce_kind, step.dim);
    case OpKind::all_to_all:
      return builder.all_to_all(mesh, value, step.atoms, step.dim, step.concat_dim);
    default: break;
  }
  WEFT_CHECK(step.kind == OpKind::collective_permute, to_string(step.kind));
  const auto num_dims = static_cast<std::size_t>(builder.type(value).shape.size());
  return builder.collective_permute(value, std::span(from.dims).first(num_dims),
                                    std::span(step.after.dims).first(num_dims));
}

}  // namespace weft
