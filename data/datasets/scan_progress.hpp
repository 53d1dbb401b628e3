#pragma once
/// ScanProgress: says how far a dataset is that reads all of something when it is opened.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weft {

/// How far a scan is.
struct ScanPlace {
  std::string_view what{};  ///< a path, or a dataset's name
  std::string_view unit{};  ///< "bytes", "files" or "items"
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0: not known
  double seconds = 0;      ///< since it began
};
/// "reads books.jsonl: 1.2 of 40.0 GB after 12 s, 0.1 GB a second".
std::string to_string(const ScanPlace& place);

/// The receiver of scans' reports, and the clock that scans look at.
struct ScanReports {
  std::function<double()> seconds{};
  std::function<void(const ScanPlace&)> say{};
  std::function<void()> end{};  ///< of a scan that has reported
};
/// For its lifetime, scans of this thread report there. Else they write lines to stderr.
class ScanReportScope {
 public:
  explicit ScanReportScope(ScanReports reports);
  ScanReportScope(const ScanReportScope&) = delete;
  ScanReportScope& operator=(const ScanReportScope&) = delete;
  ~ScanReportScope();

 private:
  ScanReports reports_;
  const ScanReports* before_;
};

/// A scan from its beginning to its end. It reports when it has taken kScanSilence, and then each
/// kScanInterval, so that a short one says nothing. Used by one thread.
class ScanProgress {
 public:
  ScanProgress(std::string what, std::string_view unit, std::int64_t total);
  ScanProgress(const ScanProgress&) = delete;
  ScanProgress& operator=(const ScanProgress&) = delete;
  ~ScanProgress();

  /// So much more has been read.
  void advance(std::int64_t count);

 private:
  const ScanReports& reports_;
  const std::string what_;
  const std::string_view unit_;
  const std::int64_t total_;
  const double begin_;
  std::int64_t done_ = 0;
  double next_;
  bool has_reported_ = false;
};

inline constexpr double kScanSilence = 5;    ///< seconds
inline constexpr double kScanInterval = 15;  ///< seconds

}  // namespace weft
