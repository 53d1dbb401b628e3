#pragma once
/// The trainer's actor: carries out the actions that JobState returns, and reports events to it.

#include "actors/link/messages.hpp"
#include "actors/link/system.hpp"
#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// `recorder` writes the trainer's own row and ring. `host` must outlive the actor.
TrainerActor spawn_trainer(System& system, const TrainerLinkOptions& options, HostLink& host,
                           const Recorder& recorder);

}  // namespace weft
