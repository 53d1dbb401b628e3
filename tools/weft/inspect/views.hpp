#pragma once
/// `weft inspect ps`, `show`, `actors` and `mesh`.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommands to `inspect`; running one sets `code`, see inspect_job.hpp.
void add_inspect_views(CLI::App& inspect, int& code);

}  // namespace weft
