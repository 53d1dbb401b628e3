#pragma once
/// Random steps of training, recorded through the tensor API. They have nested scans, conds, while
/// loops, functions of shard_map, checkpoints and micro-batches, with first and second gradients.

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "tests/support/random_program.hpp"

namespace weft::testing {

/// Returns the program of one step. All of it is smooth, so that small rounding errors stay small.
/// Its outputs are a loss, its gradients by four parameters and, in half of the programs, the
/// gradients of the sum of their squares; a quarter of the programs update parameters. Parameters
/// are sharded at random, and some unevenly.
Program random_training(const Mesh& mesh, Random& random);

}  // namespace weft::testing
