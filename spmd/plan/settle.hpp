#pragma once
/// Plans that stay the same once parameters and optimizer state have the shardings of the plan.

#include "spmd/plan/plan.hpp"

namespace weft {

/// The program of a later step: parameters and optimizer state are sharded as `plan` leaves them.
Program settled(const Program& program, const Plan& plan);

/// The plan that later steps get: compiles again, each time with the shardings of parameters and
/// optimizer state that the last plan chose, until these no longer change. So a worker that
/// replaces a lost one, and begins after the first step, gets the same plans and the same bits.
Plan compile_settled(const Program& program, const Mesh& mesh, const Target& target,
                     const PassObserver& observer = {});

}  // namespace weft
