#pragma once
/// Makes loops compute values of other loops again.

#include <optional>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// Returns the program in which a loop computes a value of another loop again if that costs less on
/// the target than to store, keep and load the value. The values of a gelu for its gradient are an
/// example. Returns nothing if no value of at least `target.recomputed_bytes_min` bytes is computed
/// again.
std::optional<Program> recompute_in_loops(const Program& chip_program, const Target& target);

}  // namespace weft
