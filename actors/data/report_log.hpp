#pragma once
/// ReportLog: keeps a worker's reports in a file, so that the trainer gets them even if the
/// worker's process dies.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weft/job/config.hpp>

#include "actors/protocol/protocol.hpp"

namespace weft {

/// The file is a sequence of CBOR arrays, each preceded by its length in four bytes. If a process
/// was killed while it was writing an array, the next process that opens the file removes the
/// incomplete array.
class ReportLog {
 public:
  /// Opens the file. If `path` is empty, the log stores nothing. Throws io.
  explicit ReportLog(const std::string& path);
  ~ReportLog();
  ReportLog(const ReportLog&) = delete;
  ReportLog& operator=(const ReportLog&) = delete;

  /// Adds a report. When it returns, the kernel has the data. Throws io.
  void add(const Report& report);
  /// Returns all reports except the first `count`. Throws io.
  std::vector<Report> after(std::uint64_t count) const;

 private:
  std::string path_;
  int file_ = -1;
};

/// Returns a text such as "loss = nan" for the first number of a report that isn't finite; nothing
/// if all are finite.
std::optional<std::string> find_not_finite(const Metrics& metrics);

}  // namespace weft
