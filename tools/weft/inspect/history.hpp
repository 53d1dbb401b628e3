#pragma once
/// `weft inspect late` and `trace`: show the past events of a job.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommands to `inspect`. Running one sets `code`, see job.hpp.
void add_inspect_history(CLI::App& inspect, int& code);

}  // namespace weft
