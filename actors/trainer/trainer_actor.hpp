#pragma once
/// The trainer actor: carries JobState's actions out.

#include <map>

#include <weft/actors/system.hpp>
#include <weft/actors/trainer/job_state.hpp>
#include <weft/actors/trainer/trainer_control.hpp>

namespace weft {

struct TrainerState {
  TrainerState();
  ~TrainerState();

  std::unique_ptr<JobState> job;
  TrainerControlOptions options;
  JobMemory* memory = nullptr;
  Board* board = nullptr;
  std::map<int, WorkerActor> workers;
  const char* name = "weft.trainer";
};

TrainerActor::behavior_type trainer_behavior(TrainerActor::stateful_pointer<TrainerState> self,
                                             const TrainerControlOptions& options,
                                             JobMemory* memory, Board* board);

}  // namespace weft
