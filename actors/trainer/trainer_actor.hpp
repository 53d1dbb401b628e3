#pragma once
/// The trainer's actor: carries out what JobState wants, and tells it what happens.

#include <weft/actors/messages.hpp>
#include <weft/actors/system.hpp>
#include <weft/actors/trainer/trainer_link.hpp>

namespace weft {

/// `memory` and `board` must outlive it.
TrainerActor spawn_trainer(System& system, const TrainerLinkOptions& options, JobMemory& memory,
                           Board& board);

}  // namespace weft
