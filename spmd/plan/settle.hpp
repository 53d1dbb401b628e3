#pragma once
/// Makes plans that stay valid once parameters and optimizer state have the shardings of the plan.

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns the program of a later step, with parameters and optimizer state sharded as `plan`
/// leaves them.
Program settled(const Program& program, const Plan& plan);

/// Returns the plan of later steps. Compiles repeatedly, each time with the shardings of parameters
/// and optimizer state that the last plan chose, until these no longer change. The plan doesn't
/// depend on the step at which a worker begins, so a worker that replaces one that died gets the
/// same plans and computes the same bits.
Plan compile_settled(const Program& program, const Mesh& mesh, const Target& target,
                     const PassObserver& observer = {});

}  // namespace weft
