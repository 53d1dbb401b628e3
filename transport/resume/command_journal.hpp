#pragma once
/// The journal of a job's commands: RUN/commands.jsonl in its run folder. The trainer adds a line
/// when a command has got its step, before any loop can read it, and one when all loops have read
/// it. The last line of a number counts. Users, and a rescue of the job, read it.
///
///   {"number": 3, "step": 120, "name": "learning_rate", "payload": {"value": 0.01}, "read": true}

#include <span>
#include <string>
#include <vector>

#include "transport/format/stored_command.hpp"

namespace weft {

/// Adds a line for each command. Throws io.
void add_to_journal(const std::string& run_dir, std::span<const StoredCommand> commands);

/// Returns the commands of the journal in order of their numbers; none if there is no journal. A
/// line that can't be read is left out: only the last one can be incomplete, and its command has
/// been read by no loop. Throws io.
std::vector<StoredCommand> read_journal(const std::string& run_dir);

}  // namespace weft
