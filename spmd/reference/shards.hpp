#pragma once
/// Cuts global tensors into the shards of the chips, and joins shards, for the interpreters and the
/// tests.

#include <string_view>

#include <weft/sharding/mesh.hpp>

#include "spmd/mesh/sharding.hpp"
#include "spmd/reference/iterate.hpp"

namespace weft {

/// An input or output of a chip's program.
struct CutTensor {
  std::string_view name;
  const TensorType& global;
  const TensorType& local;
  const Sharding& sharding;
};

/// Cuts a global tensor into shards. Fills padding with NaN, or 1 for integers, so that tests
/// notice if a result depends on it. Throws invalid_argument if the local type isn't the type of a
/// shard, or if `whole` doesn't have the global number of elements.
ChipElements cut_shards(const Mesh& mesh, const Elements& whole, const CutTensor& tensor);

/// Joins shards to the global tensor. WEFT_CHECK verifies that chips with the same part have equal
/// elements. Throws like cut_shards().
Elements join_shards(const Mesh& mesh, const ChipElements& shards, const CutTensor& tensor);

}  // namespace weft
