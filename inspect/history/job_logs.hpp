#pragma once
/// JobLogs: the logs of all processes of a job, merged by time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "inspect/history/log_file.hpp"
#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Of a run folder: trainer.log, and worker-N.log by number. Files of which the name is known.
std::vector<LogFile> find_log_files(const std::string& run_dir);

/// Log records and errors that the black box keeps of processes (-1: the trainer) that have no
/// file, by time.
std::vector<LogEntry> find_logged_events(const Snapshot& job, const std::vector<LogFile>& files);

/// Which records are wanted.
struct LogFilter {
  std::vector<int> workers{};      ///< empty: all, and the trainer
  int level = 0;                   ///< and above
  std::int64_t since_unix_ns = 0;  ///< not before

  bool has(const LogEntry& entry) const;
};

/// Records of one file keep their order, even where their times don't; of equal times, the file
/// that comes first.
class JobLogs {
 public:
  /// `events` are in order.
  JobLogs(std::vector<LogFile> files, std::vector<LogEntry> events);

  /// The next of all that are there, in files and events; absent: there is none. Keeps one record
  /// of each file. `goes_on`: a line that isn't whole is left for news(). Throws io.
  std::optional<LogEntry> next(bool goes_on = false);
  /// After next(true) has given none: what has come since, in the order of time. The last record of
  /// a file, of which more may come, and what is later than that is given when the file hasn't
  /// grown between two calls, or where the job doesn't go on.
  std::vector<LogEntry> news(const std::string& run_dir, bool goes_on);

 private:
  struct Source {
    LogFile file;
    std::optional<LogEntry> next{};
    std::int64_t latest_ns = 0;  ///< the time that its next record is taken to have, at least
  };
  static void read_next(Source& source, bool goes_on);
  void add_new_files(const std::string& run_dir);

  std::vector<Source> sources_;
  std::vector<LogEntry> held_;  ///< news that are later than what isn't given yet
  std::deque<LogEntry> events_;
};

}  // namespace weft
