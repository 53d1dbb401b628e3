#pragma once
/// `weft inspect serve`: shows a job as a page for a browser of this host, or as a single file.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`. Running it sets `code`, see tools/weft/inspect/job.hpp.
void add_inspect_serve(CLI::App& inspect, int& code);

}  // namespace weft
