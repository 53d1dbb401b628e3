#include "actors/data/late_reports.hpp"

#include <filesystem>
#include <utility>
#include <vector>

#include "actors/data/report_log.hpp"
#include "actors/data/run_folder.hpp"

namespace weft {

void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step) {
  std::error_code ignored;
  if (!std::filesystem::exists(log, ignored) || !std::filesystem::is_directory(run_dir, ignored)) {
    return;
  }
  RunFolder folder = RunFolder::open(run_dir);
  const std::vector<Report> reports = ReportLog(log).after(0);
  std::size_t next = reports.size();
  const std::string last = folder.last_row();
  while (next > 0 && folder.row_of(Metrics::from_cbor(reports[next - 1].metrics)) != last) --next;
  if (next == 0 && !last.empty()) return;
  auto place = std::pair<std::uint64_t, std::uint32_t>();
  if (next > 0) place = {reports[next - 1].step, reports[next - 1].number};
  for (bool is_first = next == 0; next < reports.size(); ++next) {
    const Report& report = reports[next];
    const std::pair<std::uint64_t, std::uint32_t> own{report.step, report.number};
    if (report.step > step || (!is_first && own <= place)) continue;
    folder.add(Metrics::from_cbor(report.metrics));
    place = own;
    is_first = false;
  }
}

}  // namespace weft
