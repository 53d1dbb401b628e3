#pragma once
/// Finds the run folders of jobs that have ended.

#include <optional>
#include <string>

namespace weft {

/// Returns the newest matching folder in ~/weft_runs (RunConfig::storage_path's default). A folder
/// matches if its run has the name `asked`, or if its job's id begins with `asked`; "" matches all.
/// Returns nothing if no folder matches.
std::optional<std::string> find_past_run(const std::string& asked);

}  // namespace weft
