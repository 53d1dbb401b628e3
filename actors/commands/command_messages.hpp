#pragma once
/// The messages about commands between the trainer and workers. messages.hpp makes them CAF
/// messages.

#include <cstdint>
#include <vector>

#include "transport/format/stored_command.hpp"

namespace weft {

/// Commands for the loops. Loops that are held continue when they get it.
struct CommandList {
  std::vector<StoredCommand> commands{};
};

/// Tells that a worker's loop has read commands, or has begun with a state that knows them.
struct CommandsRead {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  bool is_earlier = false;  ///< the state with which the loop began knows them
  std::vector<CommandMark> marks{};
};

/// Tells that a worker's loop waits for commands in this step, after it has read those up to number
/// `last`.
struct CommandsAwaited {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t last = 0;
};

}  // namespace weft
