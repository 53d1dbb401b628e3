#pragma once
/// Values of the host that all workers agree on, outside of traced programs: between loops, before
/// and after training (ray.train.collective).

#include <source_location>

#include <weft/config.hpp>
#include <weft/train_context.hpp>

namespace weft {

// Both are collectives of the loops: every worker calls them in the same order, at the same line,
// and the loop's thread only. They end no step. A loop that is entered again after a loss makes
// them again. `weft inspect why` names the worker that others wait for, and a worker that has left
// its loop fails the others at once. They throw unavailable where several workers have no mesh
// (backend.backend = "none"), peer_lost, timeout, program_divergence.

/// Returns `value` of the worker `root`, in every worker; what the others give isn't used. A NaN
/// stays one. Throws invalid_argument for a `root` that isn't a worker, or that differs between
/// workers.
Config broadcast(TrainContext& ctx, const Config& value, int root = 0,
                 std::source_location where = std::source_location::current());

/// Returns when all workers have called it.
void barrier(TrainContext& ctx, std::source_location where = std::source_location::current());

}  // namespace weft
