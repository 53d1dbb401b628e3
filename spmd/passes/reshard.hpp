#pragma once
/// Resharding: finds the steps that take a value from one layout to another.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "spmd/program/program.hpp"

namespace weft {

class Builder;

/// One step of a reshard: a collective, or an all_slice, which is local.
struct ReshardStep {
  OpKind kind;
  AtomList atoms;       ///< empty for collective_permute, given by the layouts before and after it
  int dim = -1;         ///< the dim that is sliced, gathered, scattered, or split by all_to_all
  int concat_dim = -1;  ///< all_to_all: the dim whose parts are concatenated
  Sharding after;       ///< layout of the step's result
};

/// Returns the steps from one layout to the other, in order. There are none if the layouts are
/// equal. Works for any two layouts if `to.unreduced` is part of `from.unreduced`. Partial results
/// come first: reduce_scatter if the target shards a dim by the atom, otherwise all_reduce. Slices,
/// which cost nothing, come next, then all_to_all for atoms that change dims, then all_gather for
/// the other atoms. Before these, a collective_permute exchanges atoms if that makes the sequence
/// cheaper. The order follows Shardy's reshard_to_collectives. A step may be over atoms of both
/// tiers (lower_tiers). No step uses atoms of `held` that neither layout has, because along these a
/// shard_map function may have different values.
std::vector<ReshardStep> reshard_steps(const Mesh& mesh, const TensorType& type,
                                       const Sharding& from, const Sharding& to, AtomMask held = 0);

struct CheapestReshard {
  std::size_t from;  ///< index of the first layout
  std::vector<ReshardStep> steps;
};
/// Returns the layout from which resharding to `to` is cheapest, with the steps from
/// reshard_steps(). At least one of the layouts must be convertible to `to`.
CheapestReshard cheapest_reshard(const Mesh& mesh, const TensorType& type,
                                 std::span<const Sharding> layouts, const Sharding& to,
                                 AtomMask held = 0);

/// Appends a step to a chip's program, applied to the value in the layout `from`.
ValueId add_reshard(Builder& builder, const Mesh& mesh, const ReshardStep& step,
                    const Sharding& from, ValueId value);

/// Returns the cost of the steps for a chip: the bytes that it receives, plus kCollectiveCost for
/// each collective. Between hosts, both count kNetworkCost times. `type` is the global type.
std::int64_t reshard_cost(const Mesh& mesh, const TensorType& type, const Sharding& from,
                          const std::vector<ReshardStep>& steps);

/// The cost of the synchronization in one collective, as the number of bytes that can be moved in
/// the same time: about 1.6 us at 10 GB/s.
inline constexpr std::int64_t kCollectiveCost = 16 * 1024;
/// A byte between hosts (about 1 GB/s) costs as much as this many bytes within a host (10 GB/s).
inline constexpr std::int64_t kNetworkCost = 10;

}  // namespace weft
