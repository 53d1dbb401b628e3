#pragma once
/// `weft inspect top`: a job's actors and mesh, live.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`; running it sets `code`, see job.hpp.
void add_inspect_top(CLI::App& inspect, int& code);

}  // namespace weft
