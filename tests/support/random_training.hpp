#pragma once
/// Random steps of training, recorded through the tensor API: nested scans, conds, while loops,
/// functions of shard_map, checkpoints and micro-batches, with gradients and gradients of these.

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"
#include "tests/support/random_program.hpp"

namespace weft::testing {

/// The program of one step. All of it is smooth, so that small errors of rounding stay small. Its
/// outputs are a loss, its gradients by four parameters and, in half of the programs, the gradients
/// of the sum of their squares; in a quarter parameters are updated. Parameters are sharded at
/// random, unevenly too.
Program random_training(const Mesh& mesh, Random& random);

}  // namespace weft::testing
