#pragma once
/// `weft inspect top`: shows a job's actors and mesh, and updates them continuously.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`. Running it sets `code`, see job.hpp.
void add_inspect_top(CLI::App& inspect, int& code);

}  // namespace weft
