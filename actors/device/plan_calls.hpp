#pragma once
/// The calls of a plan's collectives by one chip of the mesh: the same for every engine.

#include <cstdint>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

/// The call of a collective or barrier step, without a name. A bucket's call covers all its
/// operands and the alignment bytes between them. Temporaries begin at kArenaTempOffset in every
/// arena, shared values at `shared_begin`.
CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin);

/// The chip, by its number in the job's memory, whose arena holds a shared value.
int holder_of_shared(const Plan& plan, ValueId value, const Mesh& mesh, int position);

}  // namespace weft
