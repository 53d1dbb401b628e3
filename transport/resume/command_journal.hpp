#pragma once
/// The journal of a job's commands: RUN/commands.jsonl in its run folder. The trainer adds a line
/// when a command has got its step, before any loop can read the command, and another line when all
/// loops have read it. The last line with a command's number counts. Users, and a rescue of the
/// job, read the journal.
///
///   {"number": 3, "step": 120, "name": "learning_rate", "payload": {"value": 0.01}, "read": true}

#include <span>
#include <string>
#include <vector>

#include "transport/format/stored_command.hpp"

namespace weft {

/// Adds a line for each command. Throws io.
void add_to_journal(const std::string& run_dir, std::span<const StoredCommand> commands);

/// Returns the commands of the journal in order of their numbers; none if there is no journal.
/// Leaves out a line that can't be read: only the last line can be incomplete, and no loop has read
/// its command. Throws io.
std::vector<StoredCommand> read_journal(const std::string& run_dir);

}  // namespace weft
