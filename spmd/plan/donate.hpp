#pragma once
/// Finds the outputs that may overwrite the inputs that they update (JAX's buffer donation).

#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns a flag for each output of a chip's program that runs in `steps`. It is true if the
/// output updates an input of the same type and layout, and nothing reads that input after the
/// first byte of the output is written. In the loop that writes the output, the writing op and
/// earlier ops may read the input, because they read each element before it is overwritten.
std::vector<bool> donated_updates(const Program& chip_program, std::span<const PlanStep> steps);

}  // namespace weft
