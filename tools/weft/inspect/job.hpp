#pragma once
/// Finds the job that a subcommand of `weft inspect` shows, and defines the exit codes.

#include <optional>
#include <string>

#include "inspect/hosts/job_reader.hpp"

namespace weft {

/// The exit codes of `weft inspect` and its subcommands. `weft inspect why` also has the codes of
/// exit_code().
inline constexpr int kUsage = 1;
inline constexpr int kNoSuchJob = 2;
inline constexpr int kUnreadable = 3;

/// The parts of a snapshot that show a job's steps, its speed, and whether it hangs.
inline constexpr SnapshotParts kShownParts{.steps = true, .waits = true, .metrics = true};

inline constexpr const char* kJobHelp =
    "a job's id, the beginning of its id, or its name (also of a job that has ended, if its "
    "run folder is in ~/weft_runs); or a run folder; default: the job that was started last";

/// Returns the single job whose id begins with `asked`, or whose name is `asked`. If there is no
/// such job, or there are several, says so on stderr and returns nothing.
std::optional<std::string> find_job(const std::string& asked);

/// Returns the job that has a board and this run folder; nothing if there is none. A job that has a
/// board is running, or its processes were killed.
std::optional<std::string> find_job_in(const std::string& run_dir);

/// Opens the job that `asked` selects as kJobHelp says. If there is none, prints the reason, sets
/// `code` to the exit code and returns nothing.
std::optional<JobReader> open_asked(const std::string& asked, int& code);

/// Returns the result of `action`. If it throws, prints the reason on stderr and returns
/// kUnreadable.
template <typename Action>
int with_job(const std::string& asked, Action action);

void say_unreadable(const std::string& job, const std::exception& e);

template <typename Action>
int with_job(const std::string& asked, Action action) {
  int code = 0;
  std::optional<JobReader> reader = open_asked(asked, code);
  if (!reader) return code;
  try {
    return action(*reader);
  } catch (const std::exception& e) {
    say_unreadable(asked, e);
    return kUnreadable;
  }
}

}  // namespace weft
