#pragma once
/// Partitioning: the global program and a sharding per value give the program of one chip.

#include <span>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Assigns atoms to the factors of each op, reshards operands where they don't fit, reduces partial
/// results and lowers types to local shapes. The result's inputs and outputs carry closed
/// shardings. An output that updates an input has that input's sharding. All chips get the same
/// program; only iota, all_slice and collectives depend on the chip's position.
Program partition(const Program& program, const Mesh& mesh, std::span<const Sharding> shardings);

/// The type of one chip's shard of a tensor of type `global`.
TensorType chip_type(const TensorType& global, const Sharding& sharding, const Mesh& mesh);

}  // namespace weft
