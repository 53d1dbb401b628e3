#pragma once
/// ProgressFile: reads progress.csv of a run folder, which grows by a row for each report of the
/// loop.

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

/// Returns the line of column names, and the rows in the last `bytes` bytes of the file. Returns
/// the complete file if it is shorter, and "" if there is no file.
std::string head_and_tail(const std::string& path, std::streamoff bytes);

/// Returns the last number of each column that has one, in the order of the columns. Ignores an
/// incomplete last row. Returns no numbers for text that isn't CSV.
std::vector<ReportedMetric> last_metrics(std::string csv);
/// Returns last_metrics() of progress.csv in a run folder.
std::vector<ReportedMetric> read_last_metrics(const std::string& run_dir);

/// Returns the metric "loss", or else the first metric whose name ends with "loss"; nothing if
/// there is none.
std::optional<double> loss_of(std::span<const ReportedMetric> metrics);

}  // namespace weft
