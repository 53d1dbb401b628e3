#pragma once
/// LogFile: reads the log of one process, also while it grows.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "inspect/history/log_entry.hpp"

namespace weft {

/// Keeps one record and one line in memory, both bounded; what is longer is cut.
class LogFile {
 public:
  static constexpr std::size_t kLineBytesMax = 64 * 1024;
  static constexpr std::size_t kTextBytesMax = 256 * 1024;

  LogFile(std::string path, int worker) : path_(std::move(path)), worker_(worker) {}
  LogFile(LogFile&& other) noexcept;
  ~LogFile();

  const std::string& path() const { return path_; }
  int worker() const { return worker_; }

  /// The next record of which the end is there, because another begins; absent: there is none now.
  /// Throws io.
  std::optional<LogEntry> next();
  /// The last record as it is, when no more of it is expected. If more comes, that is a record of
  /// its own, with the same time.
  std::optional<LogEntry> take_last();
  /// When that is; absent: it has been taken.
  std::optional<std::int64_t> last_ns() const;
  /// The file has ended: what comes after its last newline is a line, too.
  void end_line();
  /// Whether anything was read since this was last called.
  bool has_grown();
  /// Begins anew where the path has become another file, or the file shorter.
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
  std::string buffer_;       ///< read, and not yet taken
  bool skips_line_ = false;  ///< the rest of a line that was too long
  bool has_grown_ = false;
  std::optional<LogEntry> last_;
  std::int64_t latest_ns_ = 0;  ///< of the record before
};

}  // namespace weft
