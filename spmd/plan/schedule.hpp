#pragma once
/// Scheduling: determines the steps in which a chip runs its program.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Fills in `steps`, `tiles`, `held` and `donated`. The plan must already have its program and the
/// `place` of every slot, but temporaries and shared values need no offsets yet.
///
/// If the target has loops, elementwise ops run in them (fuse.hpp), but across none of `borders`.
/// All_reduces run in buckets (bucket.hpp). The plan ends with a barrier if some chip may still
/// read a shared value. The update_wait step precedes the first step that overwrites a value which
/// other chips may still need. Updates before the last collective, such as an optimizer's step
/// count, are held until the update_wait, up to kHeldBytesMax. If the update_wait follows the last
/// collective, it is short, because all chips have come as far as that collective.
void schedule(Plan& plan, const Mesh& mesh, const Target& target,
              std::span<const OpId> borders = {});

/// Returns the numbers of the outputs that a step writes, in the order of writing.
std::vector<std::uint32_t> written_outputs(const Plan& plan, const PlanStep& step);

/// Returns the tile buffers of one loop; `step` is its index among the steps.
std::span<const TileBuffer> tile_buffers_of(const Plan& plan, std::size_t step);

/// Throws corrupt, with the step, op or value, unless all of these hold: the steps run every op
/// once and in order (stored fills before the loop that contains them); loops and buckets contain
/// only ops that can run together; values that live at once have different tile buffers; all chips
/// meet after the last read of a shared value; every update is after the update_wait or held until
/// it; donations are legal. The program and the slots' places must have been verified. In
/// steps_verify.cpp.
void verify_steps(const Plan& plan, const Mesh& mesh);
/// Does the checks of verify_steps() that concern barriers, updates and donations. In
/// updates_verify.cpp.
void verify_updates(const Plan& plan, const Mesh& mesh);

/// Returns a line for each step, with its ops and tiled values (%value:buffer), such as "3: loop
/// 7..12 add %9:0".
std::string steps_text(const Plan& plan);

}  // namespace weft
