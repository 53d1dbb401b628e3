#pragma once
/// StoredCommand: a command of a job (<weft/job/command.hpp>), in the form in which messages and
/// checkpoints have it (schema/command.fbs).

#include <cstdint>
#include <string>

namespace weft {

struct StoredCommand {
  std::uint64_t number = 0;  ///< counts the commands of a job and of the jobs that it continues
  /// The step in which the loops have read it; before that, the first step in which they may.
  std::uint64_t step = 0;
  std::string name{};
  std::string payload{};  ///< JSON
  bool is_read = false;

  friend bool operator==(const StoredCommand&, const StoredCommand&) = default;
};

/// Says in which step a loop has read a command.
struct CommandMark {
  std::uint64_t number = 0;
  std::uint64_t step = 0;

  friend bool operator==(const CommandMark&, const CommandMark&) = default;
};

}  // namespace weft
