#pragma once
/// progress.csv of a run folder, which grows: a row for each report of the loop.

#include <ios>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft {

/// A number that the loop has reported. It may be NaN or infinite.
struct ReportedMetric {
  std::string name;
  double value = 0;
};

/// The head, and the rows in the last `bytes` of the file; all of a shorter one. "": there is none.
std::string head_and_tail(const std::string& path, std::streamoff bytes);

/// The last number of each column that has one, in the order of the columns. A row that is being
/// written doesn't count. Text that isn't CSV has none.
std::vector<ReportedMetric> last_metrics(std::string csv);
/// The same of progress.csv in a run folder.
std::vector<ReportedMetric> read_last_metrics(const std::string& run_dir);

/// "loss", or else the first whose name ends with it; absent: there is none.
std::optional<double> loss_of(std::span<const ReportedMetric> metrics);

}  // namespace weft
