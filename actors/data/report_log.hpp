#pragma once
/// ReportLog: a worker's reports in a file, so that none is lost with the process on its way to the
/// trainer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weft/config.hpp>

#include "actors/protocol/protocol.hpp"

namespace weft {

/// The file is a sequence of CBOR arrays, each after its length in four bytes. What a killed
/// process left unfinished at the end is cut off when its successor opens the file.
class ReportLog {
 public:
  /// "" keeps nothing. Throws io.
  explicit ReportLog(const std::string& path);
  ~ReportLog();
  ReportLog(const ReportLog&) = delete;
  ReportLog& operator=(const ReportLog&) = delete;

  /// Returns when the kernel has it. Throws io.
  void add(const Report& report);
  /// All but the first `count`. Throws io.
  std::vector<Report> after(std::uint64_t count) const;

 private:
  std::string path_;
  int file_ = -1;
};

/// "loss = nan": the first number of a report that isn't finite.
std::optional<std::string> find_not_finite(const Metrics& metrics);

}  // namespace weft
