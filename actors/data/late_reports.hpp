#pragma once
/// Adds to progress.csv the reports that a trainer had not yet written when it died, and removes
/// those that the program will make again.

#include <cstdint>
#include <string>

namespace weft {

/// Reads the job's log (ReportLog) and adds to the run's progress.csv the reports after its last
/// row, up to `step`. Removes rows of later steps, because a program that continues from that step
/// makes them again. Changes nothing if the log doesn't contain the last row.
/// Throws io. Must only be called if the job is dead.
void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step);

/// Does the same for the job whose board has this id and whose folder is in this control root.
/// Changes nothing if the folder has no log, as on hosts without worker 0. Throws the errors of
/// Board::open(), too.
void add_late_reports_of(const std::string& memory_id, const std::string& root, std::uint64_t step);

}  // namespace weft
