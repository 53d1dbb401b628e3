#include "examples/common/checkpoint.hpp"

namespace examples {

void Checkpointing::add_to(CLI::App& app) {
  app.add_option(
         "--checkpoint-every", every,
         "steps between two checkpoints; 0: save only when the job is asked to end (SIGTERM)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--checkpoint-dir", dir,
                 "folder of the checkpoints; default: in the run's folder");
  app.add_option(
         "--resume", resume,
         "where to begin: never, auto (from the newest checkpoint in --checkpoint-dir) or a "
         "checkpoint's path")
      ->capture_default_str();
}

weft::CheckpointConfig Checkpointing::config() const {
  return {.path = dir, .save_interval = every, .max_to_keep = 3};
}

}  // namespace examples
