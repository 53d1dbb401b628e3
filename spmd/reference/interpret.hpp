#pragma once
/// The reference interpreter, to which tests compare results. It is slow but readable, and computes
/// in double.

#include <span>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "spmd/ops/row.hpp"

namespace weft {

/// Runs a global program: sharding_constraint is the identity, and collectives are refused with
/// invalid_argument. `inputs` are in the program's order; returns the outputs. Floating values are
/// computed in double and not rounded to their dtype; integer division truncates.
std::vector<Elements> interpret(const Program& program, std::span<const Elements> inputs);
/// Runs a global program that may contain functions of shard_map. If it does, every chip of the
/// mesh has every value; values outside of the functions are whole on each chip, and WEFT_CHECK
/// verifies that the chips agree on the outputs.
std::vector<Elements> interpret(const Program& program, const Mesh& mesh,
                                std::span<const Elements> inputs);

/// Runs a per-chip program on every chip of a simulated mesh, in lockstep, in one thread. `inputs`
/// and the result are global tensors. They are cut and joined by the shardings of the program's
/// inputs and outputs. WEFT_CHECK verifies that all chips agree on replicated outputs.
std::vector<Elements> simulate(const Program& chip_program, const Mesh& mesh,
                               std::span<const TensorType> input_types,
                               std::span<const TensorType> output_types,
                               std::span<const Elements> inputs);

}  // namespace weft
