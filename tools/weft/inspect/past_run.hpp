#pragma once
/// The run folders of jobs that have ended.

#include <optional>
#include <string>

namespace weft {

/// The newest folder in ~/weft_runs (RunConfig::storage_path's default) of a run whose name is, or
/// whose job's id begins with, what was asked for; "" asks for the newest of all. Absent: there is
/// none.
std::optional<std::string> find_past_run(const std::string& asked);

}  // namespace weft
