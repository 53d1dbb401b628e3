#pragma once
/// Lets a loop compute values of another loop again instead of loading them from memory.

#include <optional>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Returns the program with loops that compute values of other loops again, where that costs less
/// on the target than to store, keep and load the values. Examples are the intermediate values of
/// gelu that its gradient reads. Returns nothing if no value of at least
/// `target.recomputed_bytes_min` bytes is computed again.
std::optional<Program> recompute_in_loops(const Program& chip_program, const Target& target);

}  // namespace weft
