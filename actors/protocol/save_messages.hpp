#pragma once
/// What trainer and workers tell each other of a save by CheckpointManagers. Worker 0 joins the
/// parts of all workers when the trainer says that they are written.

#include <cstdint>
#include <string>

namespace weft {

/// A worker has written its part of a checkpoint, or could not.
struct PartWritten {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< the number of the run in whose place the workers save
  std::uint8_t error = 0;  ///< an Errc; 0: none
  std::string message{};
};

/// A checkpoint is durable in `path`, or could not be written. From worker 0, then to all workers.
struct SaveEnded {
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t save = 0;  ///< as in PartWritten
  std::string path{};
  std::uint8_t error = 0;
  std::string message{};
};

}  // namespace weft
