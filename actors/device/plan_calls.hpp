#pragma once
/// The collectives of a plan as one chip of the mesh calls them: the same for every engine.

#include <cstdint>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

/// Of a collective or barrier step, without a name. A bucket's call is of all its operands, with
/// the alignment's bytes between them. Temporaries lie from kArenaTempOffset on in every arena,
/// shared values from `shared_begin` on.
CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin);

/// The chip, by its number in the job's memory, in whose arena a shared value lies.
int holder_of_shared(const Plan& plan, ValueId value, const Mesh& mesh, int position);

}  // namespace weft
