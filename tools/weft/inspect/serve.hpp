#pragma once
/// `weft inspect serve`: a job as a page for a browser of this host, or as one file.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand to `inspect`; running it sets `code`, see tools/weft/inspect/job.hpp.
void add_inspect_serve(CLI::App& inspect, int& code);

}  // namespace weft
