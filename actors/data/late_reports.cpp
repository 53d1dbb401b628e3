#include "actors/data/late_reports.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "actors/data/report_log.hpp"
#include "actors/data/run_folder.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_folder.hpp"

namespace weft {
namespace {

/// Returns, for each report, whether it isn't one that a loop repeated after a loss.
std::vector<bool> find_new(const std::vector<Report>& reports) {
  std::optional<std::pair<std::uint64_t, std::uint32_t>> latest;
  std::vector<bool> is_new;
  for (const Report& report : reports) {
    const std::pair own{report.step, report.number};
    is_new.push_back(!latest || own > *latest);
    latest = std::max(latest.value_or(own), own);
  }
  return is_new;
}

/// Returns the number of reports up to the one of the last of `rows`. Reports may have equal rows,
/// so the number of rows decides. If that number doesn't fit, the last report with such a row
/// counts. Returns 0 if no report has such a row.
std::size_t count_written(const std::vector<Report>& reports, const std::vector<bool>& is_new,
                          const RunFolder& folder, const std::vector<std::string>& rows) {
  std::size_t written = 0;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (is_new[i]) ++seen;
    if (folder.row_of(Metrics::from_cbor(reports[i].metrics)) != rows.back()) continue;
    written = i + 1;
    if (seen == rows.size()) break;
  }
  return written;
}

}  // namespace

void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(run_dir, ignored)) return;
  RunFolder folder = RunFolder::open(run_dir);
  const std::vector<Report> reports = ReportLog(log).after(0);
  const std::vector<bool> is_new = find_new(reports);
  const std::vector<std::string> rows = folder.rows();
  std::size_t next = 0;
  if (!rows.empty()) {
    next = count_written(reports, is_new, folder, rows);
    if (next == 0) return;
  }
  // The trainer may have written reports of steps that not all chips had committed.
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < next; ++i) {
    if (is_new[i] && reports[i].step > step) ++ahead;
  }
  folder.drop_last_rows(ahead);
  for (; next < reports.size(); ++next) {
    if (is_new[next] && reports[next].step <= step) {
      folder.add(Metrics::from_cbor(reports[next].metrics));
    }
  }
}

void add_late_reports_of(const std::string& memory_id, const std::string& root,
                         std::uint64_t step) {
  const std::string log = folder_in(root, memory_id) + "/control.reports";
  std::error_code ignored;
  if (!std::filesystem::exists(log, ignored)) return;
  add_late_reports(Board::open(memory_id, true).header().run_dir, log, step);
}

}  // namespace weft
