#pragma once
/// The messages between trainer and workers about a save by CheckpointManagers. When the trainer
/// reports that the parts of all workers are written, worker 0 joins them. If each host stores its
/// own checkpoints, the first worker of each host joins the parts of its host, worker 0 as the
/// last.

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// Tells that a worker has written its part of a checkpoint, or has failed to.
struct PartWritten {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< the run number that the workers agreed on for this save
  std::uint8_t error = 0;  ///< an Errc; 0: no error
  std::string message{};
};

/// Tells that the checkpoint in `path` is durable, or could not be written. Each worker that joins
/// parts sends it to the trainer. To all workers the trainer then sends the message of worker 0, or
/// the first message with an error.
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
  bool is_saved = false;  ///< saved by a CheckpointManager, so it has the state by names
  /// The path of each host's copy, if each host stores its own; "" if a host has none.
  std::vector<std::string> copies{};
};

}  // namespace weft
