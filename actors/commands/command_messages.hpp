#pragma once
/// The messages about commands between trainer and workers. messages.hpp makes them CAF messages.

#include <cstdint>
#include <vector>

#include "transport/format/stored_command.hpp"

namespace weft {

/// Commands for the loops. Loops that were held go on.
struct CommandList {
  std::vector<StoredCommand> commands{};
};

/// A worker's loop has read commands, or has begun with a state that knows them.
struct CommandsRead {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  bool is_earlier = false;  ///< the state knew them
  std::vector<CommandMark> marks{};
};

/// A worker's loop waits for commands in this step, after it has read those up to number `last`.
struct CommandsAwaited {
  std::int32_t worker = -1;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;
  std::uint64_t last = 0;
};

}  // namespace weft
