#pragma once
/// Sharding: a PartitionSpec in terms of atoms, with what propagation and partitioning need to
/// know. The representation follows Shardy's TensorSharding, with sub-axes replaced by atoms.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/atom.hpp>
#include <weft/mesh.hpp>
#include <weft/partition_spec.hpp>
#include <weft/type.hpp>

namespace weft {

/// The atoms in the dims, in `unreduced` and in `replicated` are disjoint.
struct Sharding {
  std::array<AtomList, kDimCountMax> dims{};  ///< atoms that shard each dim, major to minor
  std::uint64_t provenance = 0;  ///< nibble per atom: user priority by which the atom got here
  AtomMask unreduced = 0;        ///< atoms over which the value is still a partial result
  AtomMask replicated = 0;       ///< atoms that must not shard this value
  std::uint8_t open_mask = 0;    ///< bit d: propagation may add atoms to dim d
  ReduceKind reduce_kind = ReduceKind::add;  ///< how `unreduced` is to be reduced

  /// Every dim open: propagation decides.
  static Sharding open(int num_dims);
  /// Every dim closed; unsharded, or sharded by these atoms.
  static Sharding closed(const std::array<AtomList, kDimCountMax>& dims = {}) {
    return {.dims = dims};
  }
  /// The closed sharding of a spec. Throws invalid_argument if spec and shape differ in length, or
  /// an axis is unknown or used twice; `what` names the tensor.
  static Sharding from_spec(const Mesh& mesh, const PartitionSpec& spec,
                            std::span<const std::int64_t> shape, std::string_view what,
                            int priority = 0);

  bool is_open(int dim) const { return (open_mask >> dim) & 1U; }
  /// Atoms used by the dims.
  AtomMask used() const;
  /// Whether any dim is cut.
  bool is_sharded() const {
    return std::ranges::any_of(dims, [](AtomList atoms) { return !atoms.empty(); });
  }
  bool is_replicated() const { return !is_sharded() && unreduced == 0; }
  int priority(Atom atom) const { return static_cast<int>((provenance >> (4 * atom)) & 15U); }
  void set_priority(Atom atom, int priority);
  /// The closed sharding by each dim's atoms up to the first that is in `atoms`.
  Sharding without(AtomMask atoms) const;
  /// The closed sharding by as many of each dim's atoms as divide the dim evenly.
  Sharding even(const Mesh& mesh, std::span<const std::int64_t> shape) const;

  /// Same dims and unreduced atoms (openness and provenance set aside).
  bool same_layout(const Sharding& other) const;
  /// Shape of a chip's shard of a tensor of this global shape. A dim that isn't divided evenly is
  /// rounded up: its last shards end in padding, or have nothing else.
  std::array<std::int64_t, kDimCountMax> local_shape(const Mesh& mesh,
                                                     std::span<const std::int64_t> shape) const;
  /// Offsets of a position's shard in the global tensor.
  std::array<std::int64_t, kDimCountMax> offsets(const Mesh& mesh, int position,
                                                 std::span<const std::int64_t> shape) const;
  /// The positions of the same host whose chips hold the same shard as this position's chip,
  /// including itself. All of them get the same order.
  std::vector<int> replicas(const Mesh& mesh, int position) const;
  /// `[{"data"}, {"model":0?}] unreduced{"data"} reduce=max replicated{..} priority{"model"=1}`: an
  /// axis by its name, one atom of it as name:number, ? = open. Parts that are empty or default are
  /// left out.
  std::string to_string(const Mesh& mesh, int num_dims) const;

  friend bool operator==(const Sharding&, const Sharding&) = default;
};

}  // namespace weft
