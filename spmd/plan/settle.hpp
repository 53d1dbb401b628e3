#pragma once
/// Makes plans that stay valid once parameters and optimizer state have the shardings of the plan.

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns the program of a later step, with parameters and optimizer state sharded as `plan`
/// leaves them.
Program settled(const Program& program, const Plan& plan);

/// Returns the plan of later steps. Compiles repeatedly, each time with the shardings of parameters
/// and optimizer state that the last plan chose, until these no longer change. A worker that
/// replaces one that died, and begins after the first step, therefore gets the same plans and
/// computes the same bits.
Plan compile_settled(const Program& program, const Mesh& mesh, const Target& target,
                     const PassObserver& observer = {});

}  // namespace weft
