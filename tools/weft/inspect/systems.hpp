#pragma once
/// Finds the actor system that a subcommand of `weft inspect` shows, and adds the subcommand
/// `weft inspect blocks`.

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

inline constexpr const char* kJobOrSystemHelp =
    "a job's id, the beginning of its id, or its name (also of a job that has ended, if its "
    "run folder is in ~/weft_runs); a run folder; or an actor system's id, the beginning of it, or "
    "its name; default: the job or actor system that was started last";

/// Returns whether `asked` selects an actor system rather than a job. "" selects the job or system
/// that was started last.
bool selects_system(const std::string& asked);

/// Reads the system that `asked` selects as kJobOrSystemHelp says. If there is none, or several,
/// prints the reason, sets `code` to the exit code and returns nothing.
std::optional<SystemSnapshot> read_asked_system(const std::string& asked, int& code);

/// Reads all systems that can be read. For the others, prints the reason and sets `code`.
std::vector<SystemSnapshot> read_systems(int& code);

/// Adds the subcommand to `inspect`. Running it sets `code`, see job.hpp.
void add_inspect_blocks(CLI::App& inspect, int& code);

}  // namespace weft
