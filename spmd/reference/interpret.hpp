#pragma once
/// The reference interpreter, with whose results tests compare others. It is slow but readable, and
/// computes in double.

#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/ops/row.hpp"

namespace weft {

/// Runs a global program on `inputs`, which are in the program's order, and returns the outputs. A
/// sharding_constraint does nothing, and a collective throws invalid_argument. Floating values are
/// computed in double and not rounded to their dtype; integer division truncates.
std::vector<Elements> interpret(const Program& program, std::span<const Elements> inputs);
/// Runs a global program that may contain functions of shard_map. If it does, all chips of the mesh
/// are simulated; outside of the functions each chip has complete values, and WEFT_CHECK verifies
/// that the chips have equal outputs.
std::vector<Elements> interpret(const Program& program, const Mesh& mesh,
                                std::span<const Elements> inputs);

/// Runs a chip's program on every chip of a simulated mesh, in lockstep, in one thread. `inputs`
/// and the result are global tensors, which are cut and joined by the shardings of the program's
/// inputs and outputs. WEFT_CHECK verifies that replicated outputs are equal on all chips.
std::vector<Elements> simulate(const Program& chip_program, const Mesh& mesh,
                               std::span<const TensorType> input_types,
                               std::span<const TensorType> output_types,
                               std::span<const Elements> inputs);

}  // namespace weft
