#pragma once
/// `weft inspect why`: who keeps a job from going on, and where; or how it ended.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`; running it sets `code`, see exit_code() and job.hpp.
void add_inspect_why(CLI::App& inspect, int& code);

}  // namespace weft
