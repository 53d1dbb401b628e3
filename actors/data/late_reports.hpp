#pragma once
/// Reports that a dead trainer had not written yet.

#include <cstdint>
#include <string>

namespace weft {

/// Adds to progress.csv of the run those reports of the job's log (ReportLog) that come after its
/// last row, up to `step`: a program that continues from that step makes later ones again. No log,
/// or one that doesn't have the last row, adds nothing. No process of the job may live. Throws io.
void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step);

}  // namespace weft
