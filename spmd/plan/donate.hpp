#pragma once
/// Which outputs may be written over the inputs that they update (JAX's buffer donation).

#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// For each output of a chip's program that runs in `steps`: whether it updates an input of the
/// same type and layout which nothing reads after the output's first byte is written. In the loop
/// that writes the output, the writing op and the ops before it may read the input, since they read
/// each element before it is overwritten.
std::vector<bool> donated_updates(const Program& chip_program, std::span<const PlanStep> steps);

}  // namespace weft
