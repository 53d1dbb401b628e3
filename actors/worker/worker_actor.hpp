#pragma once
/// The worker's actor, which receives the trainer's messages.

#include <memory>

#include "actors/link/system.hpp"
#include "actors/runtime/worker_link.hpp"

namespace weft {

/// Returns the link of a worker in the trainer's own process.
std::unique_ptr<WorkerLink> make_worker_link(System& system, const TrainerActor& trainer,
                                             int worker, std::chrono::milliseconds timeout,
                                             const LinkRecorder& recorder);

}  // namespace weft
