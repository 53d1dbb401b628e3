#pragma once
/// Sharding: a PartitionSpec in terms of atoms, with the data that propagation and partitioning
/// need. It follows Shardy's TensorSharding, with atoms instead of sub-axes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/atom.hpp>
#include <weft/sharding/mesh.hpp>
#include <weft/sharding/partition_spec.hpp>
#include <weft/tensor/type.hpp>

namespace weft {

/// The sharding of a value. An atom occurs at most once in `dims`, `unreduced` and `replicated`
/// together.
struct Sharding {
  std::array<AtomList, kDimCountMax> dims{};  ///< atoms that shard each dim, major to minor
  std::uint64_t provenance = 0;  ///< 4 bits per atom: the user priority by which it was added
  AtomMask unreduced = 0;        ///< atoms over which the value still has to be reduced
  AtomMask replicated = 0;       ///< atoms that must not shard this value
  std::uint8_t open_mask = 0;    ///< bit d: propagation may add atoms to dim d
  ReduceKind reduce_kind = ReduceKind::add;  ///< the kind of the reduction over `unreduced`

  /// Returns a sharding whose dims are all open, so that propagation decides how they are sharded.
  static Sharding open(int num_dims);
  /// Returns a sharding whose dims are all closed and have the given atoms.
  static Sharding closed(const std::array<AtomList, kDimCountMax>& dims = {}) {
    return {.dims = dims};
  }
  /// Returns the closed sharding of a spec. Throws invalid_argument if spec and shape differ in
  /// length, or an axis is unknown or used twice; the message begins with `what`, which names the
  /// tensor.
  static Sharding from_spec(const Mesh& mesh, const PartitionSpec& spec,
                            std::span<const std::int64_t> shape, std::string_view what,
                            int priority = 0);

  bool is_open(int dim) const { return (open_mask >> dim) & 1U; }
  /// Returns the atoms that the dims use.
  AtomMask used() const;
  /// Returns whether any dim is sharded.
  bool is_sharded() const {
    return std::ranges::any_of(dims, [](AtomList atoms) { return !atoms.empty(); });
  }
  bool is_replicated() const { return !is_sharded() && unreduced == 0; }
  int priority(Atom atom) const { return static_cast<int>((provenance >> (4 * atom)) & 15U); }
  void set_priority(Atom atom, int priority);
  /// Returns a closed sharding. Each dim keeps the atoms before its first atom that is in `atoms`.
  Sharding without(AtomMask atoms) const;
  /// Returns a closed sharding. Each dim keeps as many of its atoms as divide the dim evenly.
  Sharding even(const Mesh& mesh, std::span<const std::int64_t> shape) const;

  /// Returns whether dims and unreduced atoms are equal; openness and provenance are ignored.
  bool same_layout(const Sharding& other) const;
  /// Returns the shape of a chip's shard of a tensor of this global shape. A dim that the atoms
  /// don't divide evenly is rounded up: its last shards end in padding, or consist of padding only.
  std::array<std::int64_t, kDimCountMax> local_shape(const Mesh& mesh,
                                                     std::span<const std::int64_t> shape) const;
  /// Returns the offsets, in the global tensor, of the shard of the chip at `position`.
  std::array<std::int64_t, kDimCountMax> offsets(const Mesh& mesh, int position,
                                                 std::span<const std::int64_t> shape) const;
  /// Returns the positions on the same host whose chips have the same shard as the chip at
  /// `position`, including `position`. Returns the same list for each of these positions.
  std::vector<int> replicas(const Mesh& mesh, int position) const;
  /// Returns a text such as `[{"data"}, {"model":0?}] unreduced{"data"} reduce=max replicated{..}
  /// priority{"model"=1}`. An axis is written as its name, an atom of an axis as name:number, and ?
  /// marks an open dim. Empty and default parts are omitted.
  std::string to_string(const Mesh& mesh, int num_dims) const;

  friend bool operator==(const Sharding&, const Sharding&) = default;
};

}  // namespace weft
