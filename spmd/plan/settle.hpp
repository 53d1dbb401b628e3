#pragma once
/// Plans that stay the same once parameters and optimizer state lie where they put them.

#include "spmd/plan/plan.hpp"

namespace weft {

/// What a later step asks for: parameters and optimizer state as the plan leaves them.
Program settled(const Program& program, const Plan& plan);

/// The plan that a later step gets, which finds parameters and optimizer state where this one's
/// plan would put them: compiled again with what that asks for. So a loop that takes another's
/// place, and begins after the first step, comes to the same plans, and to the same bits.
Plan compile_settled(const Program& program, const Mesh& mesh, const PassObserver& observer = {});

}  // namespace weft
