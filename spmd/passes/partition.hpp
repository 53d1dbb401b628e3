#pragma once
/// Partitioning: makes the program of one chip from the global program and a sharding per value.

#include <span>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Assigns atoms to the factors of each op, reshards operands whose layout doesn't fit, reduces
/// partial results, and lowers types to local shapes. The inputs and outputs of the result have
/// closed shardings. An output that updates an input has that input's sharding. All chips get the
/// same program; only iota, all_slice and collectives depend on the chip's position.
Program partition(const Program& program, const Mesh& mesh, std::span<const Sharding> shardings);

/// Returns the type of one chip's shard of a tensor of type `global`.
TensorType chip_type(const TensorType& global, const Sharding& sharding, const Mesh& mesh);

}  // namespace weft
