#pragma once
/// `weft inspect programs`, `memory`, `diff` and `shards`: show the programs and tensors of a job.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommands to `inspect`. Running one sets `code`, see job.hpp.
void add_inspect_programs(CLI::App& inspect, int& code);

}  // namespace weft
