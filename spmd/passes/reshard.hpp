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

/// One collective, or a local all_slice.
struct ReshardStep {
  OpKind kind;
  AtomList atoms;       ///< empty for collective_permute, which the layouts before and after define
  int dim = -1;         ///< the dim that is sliced, gathered, scattered, or split by all_to_all
  int concat_dim = -1;  ///< used by all_to_all
  Sharding after;       ///< layout of the step's result
};

/// Returns the steps from one layout to the other, in order. There are none if the layouts are
/// equal. Works for any two layouts if `to.unreduced` is part of `from.unreduced`. Partial results
/// come first: reduce_scatter if the target shards a dim by the atom, otherwise all_reduce. Slices,
/// which cost nothing, come next, then all_to_all for atoms that change dims, then all_gather for
/// the other atoms. Before these, a collective_permute exchanges atoms if that makes the whole
/// cheaper. The order follows Shardy's reshard_to_collectives. A step may meet both within hosts
/// and between them (lower_tiers). No step moves the value along atoms of `held` that neither
/// layout has, because chips may have different values there in a shard_map function.
std::vector<ReshardStep> reshard_steps(const Mesh& mesh, const TensorType& type,
                                       const Sharding& from, const Sharding& to, AtomMask held = 0);

struct CheapestReshard {
  std::size_t from;  ///< index of the first layout
  std::vector<ReshardStep> steps;
};
/// Returns the cheapest steps of reshard_steps() from one of the layouts to `to`. At least one of
/// the layouts must be convertible to `to`.
CheapestReshard cheapest_reshard(const Mesh& mesh, const TensorType& type,
                                 std::span<const Sharding> layouts, const Sharding& to,
                                 AtomMask held = 0);

/// Appends a step from this layout of the value to a chip's program.
ValueId add_reshard(Builder& builder, const Mesh& mesh, const ReshardStep& step,
                    const Sharding& from, ValueId value);

/// Returns the cost of the steps for a chip: bytes received, and kCollectiveCost for each
/// collective. Both count kNetworkCost times between hosts. `type` is the global type.
std::int64_t reshard_cost(const Mesh& mesh, const TensorType& type, const Sharding& from,
                          const std::vector<ReshardStep>& steps);

/// The cost of the synchronization in one collective, given as bytes that could be moved meanwhile:
/// about 1.6 us at 10 GB/s.
inline constexpr std::int64_t kCollectiveCost = 16 * 1024;
/// The cost of a byte between hosts, in bytes within a host: about 1 GB/s to 10 GB/s.
inline constexpr std::int64_t kNetworkCost = 10;

}  // namespace weft
