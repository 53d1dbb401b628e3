#pragma once
/// The messages between trainer and workers about a save by CheckpointManagers. Worker 0 joins the
/// parts of all workers when the trainer reports that they are written. If each host stores its own
/// checkpoints, the first worker of each host joins the parts of its host, and worker 0 is last.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// A worker has written its part of a checkpoint, or has failed to.
struct PartWritten {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< the run number that the workers agreed on for this save
  std::uint8_t error = 0;  ///< an Errc; 0: no error
  std::string message{};
};

/// The checkpoint in `path` is durable, or could not be written. A worker that joins parts sends
/// this to the trainer, which sends that of worker 0, or the first error, to all workers.
struct SaveEnded {
  std::int32_t worker = 0;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< the same number as in PartWritten
  std::string path{};
  std::uint8_t error = 0;
  std::string message{};
};

/// A checkpoint to which every worker has contributed its part.
struct WholeCheckpoint {
  std::uint64_t step = 0;
  std::string path{};
  bool is_saved = false;  ///< a CheckpointManager saved it, so it has the state by names
  /// The paths of the copies, by host, if each host stores its own; "" if a host has none.
  std::vector<std::string> copies{};
};

}  // namespace weft
