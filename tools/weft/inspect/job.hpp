#pragma once
/// The choice of a job by the subcommands of `weft inspect`, and their exit codes.

#include <optional>
#include <string>

#include "inspect/snapshot/snapshot_reader.hpp"

namespace weft {

/// The exit codes of `weft inspect` and its subcommands. `why` also has those of exit_code().
inline constexpr int kUsage = 1;
inline constexpr int kNoSuchJob = 2;
inline constexpr int kUnreadable = 3;

/// The parts of a snapshot that show a job's steps, its speed, and whether it hangs.
inline constexpr SnapshotParts kShownParts{.steps = true, .waits = true, .metrics = true};

inline constexpr const char* kJobHelp =
    "a job's id, the beginning of it, or its name, also of one that has ended, if its run folder "
    "is "
    "in ~/weft_runs; or a run folder; without it: the job that was started last";

/// Returns the single job whose id begins with `asked`, or whose name it is. If there is none, or
/// several, says so on stderr.
std::optional<std::string> find_job(const std::string& asked);

/// Returns the job that has a board and this run folder. It is running, or its processes were
/// killed.
std::optional<std::string> find_job_in(const std::string& run_dir);

/// Opens the job as kJobHelp says. If it is absent, the reason has been printed and `code` is the
/// exit code.
std::optional<SnapshotReader> open_asked(const std::string& asked, int& code);

/// Returns the result of `action`. If it throws, prints the reason on stderr and returns
/// kUnreadable.
template <typename Action>
int with_job(const std::string& asked, Action action);

void say_unreadable(const std::string& job, const std::exception& e);

template <typename Action>
int with_job(const std::string& asked, Action action) {
  int code = 0;
  std::optional<SnapshotReader> reader = open_asked(asked, code);
  if (!reader) return code;
  try {
    return action(*reader);
  } catch (const std::exception& e) {
    say_unreadable(asked, e);
    return kUnreadable;
  }
}

}  // namespace weft
