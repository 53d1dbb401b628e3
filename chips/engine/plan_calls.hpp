#pragma once
/// The calls of a plan's collectives by one chip of the mesh: the same for every engine.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

/// The call of a collective or barrier step, without a name. A bucket's call covers all its
/// operands and the alignment bytes between them. Temporaries begin at kArenaTempOffset in every
/// arena, shared values at `shared_begin`.
CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin);

/// A place in the arena of a chip, which is known by its number in the job's memory.
struct ChipPlace {
  int chip = 0;
  std::uint64_t offset = 0;
};

/// Where the chip at `position` finds a temporary, a shared value, or its part of one.
ChipPlace place_in_arena(const Plan& plan, ValueId value, const Mesh& mesh, int position,
                         std::uint64_t shared_begin);
/// What this chip adds for the result of a reduce_scatter that loops add (shared.hpp): its part of
/// the operand of each chip of the group, in group order.
std::vector<ChipPlace> addends_of(const Plan& plan, ValueId result, const Mesh& mesh, int position);

}  // namespace weft
