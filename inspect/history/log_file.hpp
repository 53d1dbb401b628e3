#pragma once
/// LogFile: reads the log of one process, even while the file grows.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "inspect/history/log_entry.hpp"

namespace weft {

/// Keeps one record and one line in memory. Longer records and lines are cut to the sizes below.
class LogFile {
 public:
  static constexpr std::size_t kLineBytesMax = 64 * 1024;
  static constexpr std::size_t kTextBytesMax = 256 * 1024;

  LogFile(std::string path, int worker) : path_(std::move(path)), worker_(worker) {}
  LogFile(LogFile&& other) noexcept;
  ~LogFile();

  const std::string& path() const { return path_; }
  int worker() const { return worker_; }

  /// Returns the next complete record, or nothing if there is none now. A record is complete when
  /// the next one begins. Throws io.
  std::optional<LogEntry> next();
  /// Returns the last record, although no later record has completed it. If more lines of this
  /// record follow after all, they become another record with the same time.
  std::optional<LogEntry> take_last();
  /// Returns the time of the last record; nothing if that record was already returned.
  std::optional<std::int64_t> last_ns() const;
  /// Notes that the file has ended, so that text after its last newline counts as a line.
  void end_line();
  /// Returns whether anything was read since the last call of this function.
  bool has_grown();
  /// Restarts from the beginning if the path now names another file, or if the file has become
  /// shorter.
  void renew();

 private:
  bool open();
  bool read_more();
  std::optional<std::string> take_line();
  void append(const std::string& line);
  void close();

  std::string path_;
  int worker_;
  int file_ = -1;
  ino_t inode_ = 0;
  off_t read_ = 0;
  std::string buffer_;       ///< bytes that were read but not yet taken
  bool skips_line_ = false;  ///< whether to skip the rest of a line that is too long
  bool has_grown_ = false;
  std::optional<LogEntry> last_;
  std::int64_t latest_ns_ = 0;  ///< time of the previous record
};

}  // namespace weft
