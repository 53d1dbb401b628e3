#pragma once
/// CheckpointConfig: the options of a job's checkpoints.

#include <string>

namespace weft {

/// Where and when a loop's CheckpointManager saves, and which checkpoints stay.
struct CheckpointConfig {
  /// The folder of the checkpoints. Runs that go on from each other share it; two jobs at a time
  /// can't. Default: "checkpoints" in the run's folder.
  std::string path{};
  int save_interval = 1;  ///< steps between two saves; 0: none but by force or on preemption
  /// So many checkpoints stay: the newest, or with best_by the best. The newest always stays. 0:
  /// all. Holds for the folders of TrainContext::report(), too.
  int max_to_keep = 0;
  int keep_every = 0;  ///< checkpoints of multiples of so many steps stay besides; 0: none
  /// A number of SaveOptions::metrics by which checkpoints are compared. One without it is worse
  /// than all others.
  std::string best_by{};
  std::string best_mode = "min";  ///< "min" or "max"
  bool on_preemption = true;      ///< a save is due when the job has been asked to end
};

/// A folder with the files that a loop saved.
struct Checkpoint {
  std::string path{};
};

}  // namespace weft
