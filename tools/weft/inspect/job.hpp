#pragma once
/// The job that a subcommand of `weft inspect` is asked for, and its exit codes.

#include <optional>
#include <string>

#include "inspect/snapshot/snapshot_reader.hpp"

namespace weft {

/// Of `weft inspect` and its subcommands; those of `why` are of exit_code() besides.
inline constexpr int kUsage = 1;
inline constexpr int kNoSuchJob = 2;
inline constexpr int kUnreadable = 3;

/// The steps of a job, for people: how fast it is, and when it is hung.
inline constexpr SnapshotParts kShownParts{.steps = true, .waits = true, .metrics = true};

inline constexpr const char* kJobHelp =
    "a job's id, the beginning of it, or its name, also of one that has ended, if its run folder "
    "is "
    "in ~/weft_runs; or a run folder; without it: the job that was started last";

/// The one job whose id begins with, or whose name is, what was asked for. Says on stderr where
/// there is none or are several.
std::optional<std::string> find_job(const std::string& asked);

/// The job that has a board and this run folder: it runs, or its processes were killed.
std::optional<std::string> find_job_in(const std::string& run_dir);

/// As kJobHelp says. Absent: it has been said why, and `code` is the exit code.
std::optional<SnapshotReader> open_asked(const std::string& asked, int& code);

/// What `action` returns; kUnreadable, and the reason on stderr, where it throws.
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
