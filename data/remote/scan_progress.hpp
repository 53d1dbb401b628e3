#pragma once
/// ScanProgress: reports the progress of a dataset that reads all its data when it is opened.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weft {

/// The progress of a scan.
struct ScanPlace {
  std::string_view what{};  ///< a path, or a dataset's name
  std::string_view unit{};  ///< "bytes", "files" or "items"
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0 if the total isn't known
  double seconds = 0;      ///< time since the scan began
};
/// Returns text such as "reads books.jsonl: 1.2 of 40.0 GB after 12 s, 0.1 GB a second".
std::string to_string(const ScanPlace& place);

/// The functions that receive the reports of scans, and the clock that scans use.
struct ScanReports {
  std::function<double()> seconds{};
  std::function<void(const ScanPlace&)> say{};
  std::function<void()> end{};  ///< called at the end of a scan that has made reports
};
/// Redirects the reports of this thread's scans during the scope's lifetime. Without a scope, scans
/// write lines to stderr.
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

/// A scan from its beginning to its end. It reports for the first time after kScanSilence and then
/// every kScanInterval, so a short scan reports nothing. Only one thread may use it.
class ScanProgress {
 public:
  ScanProgress(std::string what, std::string_view unit, std::int64_t total);
  ScanProgress(const ScanProgress&) = delete;
  ScanProgress& operator=(const ScanProgress&) = delete;
  ~ScanProgress();

  /// Notes that `count` more units have been read.
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
