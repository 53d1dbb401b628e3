#pragma once
/// Scheduling: the steps in which a chip runs its program.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Fills in what a plan says of its steps: `steps`, `tiles`, `held` and `donated`. The plan has its
/// program, and in its slots the place of every value, but no offsets yet.
///
/// Elementwise ops run in loops (fuse.hpp), all_reduces in buckets (bucket.hpp). The chips meet in
/// a barrier at the end where some may still read a shared value. The update_wait stands as late as
/// the outputs allow that may be written over what other chips still need: behind the last
/// collective nobody waits there, since all chips have come as far. What an optimizer counts before
/// it has any gradient is small, and is held back until then.
void schedule(Plan& plan, const Mesh& mesh);

/// The outputs, by number, that a step writes: in the order in which it writes them.
std::vector<std::uint32_t> written_outputs(const Plan& plan, const PlanStep& step);

/// Those of one loop, by its number among the steps.
std::span<const TileBuffer> tile_buffers_of(const Plan& plan, std::size_t step);

/// A line for each step, of its ops and the tile buffers of its values: "3: loop 7..12 add %9:0".
std::string steps_text(const Plan& plan);

}  // namespace weft
