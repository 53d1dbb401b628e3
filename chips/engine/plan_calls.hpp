#pragma once
/// Converts a plan's collectives to the calls of one chip, for all kinds of engines.

#include <cstdint>
#include <vector>

#include "spmd/plan/plan.hpp"
#include "transport/collectives/collective_call.hpp"

namespace weft {

/// Returns the call, without a name, for a step that is a collective or a barrier. The call for a
/// bucket (a step of several all_reduces) covers all operands and the padding between them.
/// `shared_begin` is where shared values begin in every arena; temporaries begin at
/// kArenaTempOffset.
CollectiveCall collective_call(const Plan& plan, const PlanStep& step, const Mesh& mesh,
                               int position, std::uint64_t shared_begin);

/// A place in the arena of a chip. `chip` is the chip's number in the job's memory.
struct ChipPlace {
  int chip = 0;
  std::uint64_t offset = 0;
};

/// Returns the place of `value` for the chip at `position`. `value` is a temporary, a shared value,
/// or the chip's part of a shared value.
ChipPlace place_in_arena(const Plan& plan, ValueId value, const Mesh& mesh, int position,
                         std::uint64_t shared_begin);
/// Returns the places of the addends from which loops compute this chip's result of a
/// reduce_scatter (shared.hpp). The addend of each chip of the group, in group order, is the part
/// of that chip's operand that belongs to this chip.
std::vector<ChipPlace> addends_of(const Plan& plan, ValueId result, const Mesh& mesh, int position);

}  // namespace weft
