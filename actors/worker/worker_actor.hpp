#pragma once
/// The worker actor: hears the trainer.

#include <memory>

#include <weft/actors/system.hpp>
#include <weft/actors/worker/worker_link.hpp>

namespace weft {

/// A worker in the trainer's own process.
std::unique_ptr<WorkerLink> make_worker_link(System& system, const TrainerActor& trainer,
                                             int worker, std::chrono::milliseconds timeout);

}  // namespace weft
