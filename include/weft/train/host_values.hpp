#pragma once
/// Exchanges host values between the loops of all workers, outside of traced programs, such as
/// before and after training (ray.train.collective).

#include <source_location>

#include <weft/job/config.hpp>
#include <weft/train/train_context.hpp>

namespace weft {

// Both functions are collectives of the loops: every worker must call them in the same order and at
// the same line, from the loop's thread. They end no step. A loop that begins again after the loss
// of a worker calls them again. `weft inspect why` names the worker for which others wait. If a
// worker has left its loop, the call fails at once in the other workers. Both throw unavailable if
// several workers have no mesh (backend.backend = "none"), and peer_lost, timeout or
// program_divergence.

/// Returns, in every worker, the `value` that worker `root` passed; the values of other workers are
/// ignored. A NaN stays a NaN. Throws invalid_argument if `root` isn't a worker or differs between
/// workers.
Config broadcast(TrainContext& ctx, const Config& value, int root = 0,
                 std::source_location where = std::source_location::current());

/// Returns when all workers have called barrier().
void barrier(TrainContext& ctx, std::source_location where = std::source_location::current());

}  // namespace weft
