#pragma once
/// Makes plans for steps whose parameters and optimizer state already have the shardings that an
/// earlier step's plan gave them.

#include "spmd/plan/plan.hpp"

namespace weft {

/// Returns the program of a later step: `program` with parameters and optimizer state sharded as a
/// run of `plan` leaves them.
Program settled(const Program& program, const Plan& plan);

/// Returns the plan of later steps. Compiles repeatedly, each time with the shardings of parameters
/// and optimizer state that the last plan chose, until these no longer change. The plan doesn't
/// depend on the step at which a worker begins, so a replacement for a dead worker gets the same
/// plans and computes the same bits.
Plan compile_settled(const Program& program, const Mesh& mesh, const Target& target,
                     const PassObserver& observer = {});

}  // namespace weft
