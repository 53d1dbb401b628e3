#pragma once
/// StoredCommand: a command of a job (<weft/job/command.hpp>), in the form in which messages and
/// checkpoints have it (schema/command.fbs).

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weft {

struct StoredCommand {
  std::uint64_t number = 0;  ///< counted over the job and the jobs that it continues
  /// The step in which the loops have read the command; until then, the first step in which they
  /// may read it.
  std::uint64_t step = 0;
  std::string name{};
  std::string payload{};  ///< JSON
  bool is_read = false;

  friend bool operator==(const StoredCommand&, const StoredCommand&) = default;
};

/// Returns why these can't be the commands of a job; std::nullopt if they can.
std::optional<std::string> commands_fault(std::span<const StoredCommand> commands);

/// The step in which a loop has read a command.
struct CommandMark {
  std::uint64_t number = 0;
  std::uint64_t step = 0;

  friend bool operator==(const CommandMark&, const CommandMark&) = default;
};

}  // namespace weft
