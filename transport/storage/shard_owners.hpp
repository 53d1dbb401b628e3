#pragma once
/// Which chip stores which part of a job's state, so that every element is stored once and all
/// chips store about as much.

#include <cstddef>
#include <span>
#include <vector>

#include <weft/mesh.hpp>
#include <weft/type.hpp>

#include "spmd/mesh/box.hpp"
#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A tensor on the chips.
struct ShardedTensor {
  TensorType type{};
  Sharding sharding{};
};

/// A box that one chip stores: its shard without padding, or some of the shard's rows.
struct OwnedBox {
  std::size_t tensor = 0;  ///< index
  int position = 0;        ///< of the chip in the mesh
  Box box{};
};

/// Gives each shard to the chip that has the fewest bytes so far of those that hold it, large
/// shards first; a shard larger than a chip's fair share is cut by rows. The same for the same
/// arguments: every worker computes it for itself. In order of positions, then tensors.
std::vector<OwnedBox> assign_owners(std::span<const ShardedTensor> tensors, const Mesh& mesh);

}  // namespace weft
