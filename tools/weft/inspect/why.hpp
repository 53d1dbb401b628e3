#pragma once
/// `weft inspect why`: says which worker blocks a job, and where; or how the job ended.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`. Running it sets `code`; see exit_code() and job.hpp.
void add_inspect_why(CLI::App& inspect, int& code);

}  // namespace weft
