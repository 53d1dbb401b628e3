#pragma once
/// The reference interpreter: slow, readable, in double. The oracle of all tests.

#include <span>
#include <vector>

#include <weft/mesh.hpp>

#include "spmd/ops/row.hpp"

namespace weft {

/// Runs a global program (sharding_constraint is the identity; collectives are refused with
/// invalid_argument). `inputs` in the program's order; returns the outputs. Floating values are
/// computed in double and not rounded to their dtype; integer division truncates.
std::vector<Elements> interpret(const Program& program, std::span<const Elements> inputs);
/// The same for a program that may have functions of shard_map. If it has, every value is on every
/// chip of the mesh, those outside of the functions whole (outputs are checked to agree:
/// WEFT_CHECK).
std::vector<Elements> interpret(const Program& program, const Mesh& mesh,
                                std::span<const Elements> inputs);

/// Runs a per-chip program on every chip of a simulated mesh, in lockstep, one thread. `inputs` and
/// the result are global tensors, cut and joined as the shardings of the program's inputs and
/// outputs say (replicated outputs are checked to agree on all chips: WEFT_CHECK).
std::vector<Elements> simulate(const Program& chip_program, const Mesh& mesh,
                               std::span<const TensorType> input_types,
                               std::span<const TensorType> output_types,
                               std::span<const Elements> inputs);

}  // namespace weft
