#pragma once
/// Adds to progress.csv the reports that a trainer had not yet written when it died.

#include <cstdint>
#include <string>

namespace weft {

/// Reads the job's log (ReportLog) and adds to the run's progress.csv the reports after its last
/// row, up to `step`. Later reports aren't added, because a program that continues from that step
/// makes them again. Adds nothing if there is no log, or if the log doesn't contain the last row.
/// Throws io. Must only be called if the job is dead.
void add_late_reports(const std::string& run_dir, const std::string& log, std::uint64_t step);

/// Does the same for the job whose board has this id and whose folder is in this control root.
/// Throws the errors of Board::open(), too.
void add_late_reports_of(const std::string& memory_id, const std::string& root, std::uint64_t step);

}  // namespace weft
