#pragma once
/// ShardOwners: decides which chip stores which part of a job's state, so that every element is
/// stored once and all chips store about the same amount.

#include <cstddef>
#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/box.hpp"
#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A tensor that is distributed over the chips.
struct ShardedTensor {
  TensorType type{};
  Sharding sharding{};
};

/// A box that one chip stores: the chip's shard of the tensor without padding, or some rows of the
/// shard.
struct OwnedBox {
  std::size_t tensor = 0;  ///< index of the tensor
  int position = 0;        ///< the chip's position in the mesh
  Box box{};
};

/// Returns the positions of all chips of the mesh.
std::vector<int> all_positions(const Mesh& mesh);

/// Assigns the shards of the chips at `positions`, at least one chip, to these chips, large shards
/// first. A shard goes to the chip with the fewest bytes so far, among the chips that hold the
/// shard. A shard larger than a chip's fair share is cut by rows. The result depends only on the
/// arguments, so all workers compute the same one. It is ordered by position, then by tensor.
std::vector<OwnedBox> assign_owners(std::span<const ShardedTensor> tensors, const Mesh& mesh,
                                    std::span<const int> positions);

}  // namespace weft
