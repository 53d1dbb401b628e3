#pragma once
/// Reports that a dead trainer had not written yet.

#include <cstdint>
#include <string>

namespace weft {

/// Adds to progress.csv of the run those reports of the job's log (ReportLog) that come after its
/// last row, up to `step`: a program that goes on from that step makes later ones again. Without a
/// log, or where that lacks the last row, it adds nothing. Throws io. For a dead job.
void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step);

}  // namespace weft
