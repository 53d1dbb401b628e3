#pragma once
/// JobLogs: merges the logs of all processes of a job by time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "inspect/history/log_file.hpp"
#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// Returns the log files of a run folder: trainer.log, then worker-N.log by number.
std::vector<LogFile> find_log_files(const std::string& run_dir);

/// Returns log records and errors from the black box, sorted by time, for the processes that have
/// no log file.
std::vector<LogEntry> find_logged_events(const Snapshot& job, const std::vector<LogFile>& files);

/// Selects log records.
struct LogFilter {
  std::vector<int> workers{};      ///< empty selects all workers and the trainer
  int level = 0;                   ///< the lowest level that is selected
  std::int64_t since_unix_ns = 0;  ///< the earliest time that is selected

  bool has(const LogEntry& entry) const;
};

/// Merges log records by time. Records of one file keep their order, even if their times don't
/// ascend. Of records with equal times, the one of the earlier file comes first.
class JobLogs {
 public:
  /// `events` must be sorted by time.
  JobLogs(std::vector<LogFile> files, std::vector<LogEntry> events);

  /// Returns the next record of all files and events; nothing if there is none. Has only one record
  /// of each file in memory. If `goes_on`, the job still runs, and an incomplete line at the end of
  /// a file is left for news(). Throws io.
  std::optional<LogEntry> next(bool goes_on = false);
  /// Returns the records that were added after next(true) returned nothing, sorted by time. As a
  /// file's last record may still grow, this record and all later ones are returned only when the
  /// file hasn't grown between two calls, or when `goes_on` is false because the job has ended.
  std::vector<LogEntry> news(const std::string& run_dir, bool goes_on);

 private:
  struct Source {
    LogFile file;
    std::optional<LogEntry> next{};
    std::int64_t latest_ns = 0;  ///< latest time in the file so far, by which sources are sorted
  };
  static void read_next(Source& source, bool goes_on);
  void add_new_files(const std::string& run_dir);

  std::vector<Source> sources_;
  std::vector<LogEntry> held_;  ///< records later than a record that may still grow
  std::deque<LogEntry> events_;
};

}  // namespace weft
