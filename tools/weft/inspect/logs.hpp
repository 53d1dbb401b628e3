#pragma once
/// `weft inspect logs`: shows the logs of all processes of a job, merged by time.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`. Running it sets `code`, see job.hpp.
void add_inspect_logs(CLI::App& inspect, int& code);

}  // namespace weft
