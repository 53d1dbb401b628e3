#pragma once
/// Resharding: the steps that take a value from one layout to another.

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
  AtomList atoms;       ///< empty for collective_permute: the layouts before and after define it
  int dim = -1;         ///< the dim that is sliced, gathered, scattered, or split by all_to_all
  int concat_dim = -1;  ///< all_to_all
  Sharding after;       ///< layout of the step's result
};

/// Steps from one layout to the other, in order; none if the layouts are the same. Works for any
/// two layouts where `to.unreduced` is part of `from.unreduced`. Partial results come first:
/// reduce_scatter where the target shards a dim by the atom, else all_reduce. A reduction across
/// the network (Mesh::dcn_atoms) is a reduce_scatter within hosts, along a dim that divides evenly,
/// and an all_reduce of each part between hosts. Then slices, which cost nothing; all_to_all for
/// atoms that change dims; all_gather for the rest. Before these, a collective_permute exchanges
/// atoms if that makes the whole cheaper. The order follows Shardy's reshard_to_collectives. No
/// step moves the value along atoms of `held` that neither layout has: in a function of shard_map,
/// chips may have other values there.
std::vector<ReshardStep> reshard_steps(const Mesh& mesh, const TensorType& type,
                                       const Sharding& from, const Sharding& to, AtomMask held = 0);

struct CheapestReshard {
  std::size_t from;  ///< number of the layout to begin with
  std::vector<ReshardStep> steps;
};
/// The steps of the least cost from one of these layouts to `to`, as reshard_steps() gives them.
/// Some layout must be able to become it.
CheapestReshard cheapest_reshard(const Mesh& mesh, const TensorType& type,
                                 std::span<const Sharding> layouts, const Sharding& to,
                                 AtomMask held = 0);

/// Appends a step from this layout of the value to a chip's program.
ValueId add_reshard(Builder& builder, const Mesh& mesh, const ReshardStep& step,
                    const Sharding& from, ValueId value);

/// The cost of the steps for a chip: bytes received, and kCollectiveCost for each collective.
/// `type` is the global type.
std::int64_t reshard_cost(const Mesh& mesh, const TensorType& type, const Sharding& from,
                          const std::vector<ReshardStep>& steps);

/// The cost of one collective's synchronization, as bytes moved in that time: about 1.6 us at 10
/// GB/s.
inline constexpr std::int64_t kCollectiveCost = 16 * 1024;

}  // namespace weft
