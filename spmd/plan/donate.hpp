#pragma once
/// Which outputs may be written over the inputs that they update (JAX's buffer donation).

#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// By output of a chip's program that runs in these steps: whether nothing reads the input that it
/// updates once its first byte is written. An elementwise op may read there what it replaces:
/// element for element, before it writes it.
std::vector<bool> donated_updates(const Program& chip_program, std::span<const PlanStep> steps);

}  // namespace weft
