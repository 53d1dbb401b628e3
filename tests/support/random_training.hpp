#pragma once
/// Records random training steps through the tensor API. They have nested scans, conds, while
/// loops, functions of shard_map, checkpoints and micro-batches, with first and second gradients.

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"
#include "tests/support/random_program.hpp"

namespace weft::testing {

/// Returns the program of one step. All its functions are smooth, so that small rounding errors
/// stay small. Its outputs are a loss, the gradients of four parameters and, in half of the
/// programs, the gradients of the sum of these gradients' squares. A quarter of the programs update
/// parameters. Parameters are sharded at random, some of them unevenly.
Program random_training(const Mesh& mesh, Random& random);

}  // namespace weft::testing
