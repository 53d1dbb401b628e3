#pragma once
/// Loops that compute again what other loops have made.

#include <optional>

#include "spmd/program/program.hpp"
#include "spmd/target/target.hpp"

namespace weft {

/// The program in which a loop computes again what another one has made, where that costs less on
/// the target than to store it, keep it and load it, as of a gelu's values for its gradient. Absent
/// if there is nothing of at least `target.recomputed_bytes_min` bytes to compute again.
std::optional<Program> recompute_in_loops(const Program& chip_program, const Target& target);

}  // namespace weft
