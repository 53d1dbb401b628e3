#pragma once
/// Lets a loop compute values of another loop again instead of loading them from memory.

#include <optional>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Returns the program in which a loop computes a value of another loop again if that costs less on
/// the target than to store, keep and load the value. Examples are the intermediate values of gelu,
/// which its gradient reads. Returns nothing if no value of at least `target.recomputed_bytes_min`
/// bytes is computed again.
std::optional<Program> recompute_in_loops(const Program& chip_program, const Target& target);

}  // namespace weft
