#pragma once
/// The trainer's actor: carries out what JobState wants, and tells it what happens.

#include "actors/link/messages.hpp"
#include "actors/link/system.hpp"
#include "actors/trainer/trainer_link.hpp"

namespace weft {

/// `memory` and `board` must outlive it.
TrainerActor spawn_trainer(System& system, const TrainerLinkOptions& options, JobMemory& memory,
                           Board& board, BlackBoxWriter& box);

}  // namespace weft
