#pragma once
/// `weft inspect late` and `trace`: what has happened in a job.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommands to `inspect`; running one sets `code`, see job.hpp.
void add_inspect_history(CLI::App& inspect, int& code);

}  // namespace weft
