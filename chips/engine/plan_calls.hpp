#pragma once
/// Makes the calls of a plan's collectives on one chip of the mesh, for every engine.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

/// Returns the call of a collective or barrier step, without a name. A bucket's call covers all its
/// operands and the alignment bytes between them. Temporaries begin at kArenaTempOffset in every
/// arena, and shared values at `shared_begin`.
CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin);

/// A place in the arena of a chip. The chip is given by its number in the job's memory.
struct ChipPlace {
  int chip = 0;
  std::uint64_t offset = 0;
};

/// Returns where the chip at `position` has a temporary, a shared value, or its part of a shared
/// value.
ChipPlace place_in_arena(const Plan& plan, ValueId value, const Mesh& mesh, int position,
                         std::uint64_t shared_begin);
/// Returns the addends of this chip for the result of a reduce_scatter that loops add (shared.hpp).
/// They are its part of the operand of each chip of the group, in group order.
std::vector<ChipPlace> addends_of(const Plan& plan, ValueId result, const Mesh& mesh, int position);

}  // namespace weft
