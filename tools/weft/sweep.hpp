#pragma once
/// `weft sweep`: removes the files that dead jobs have left.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. `code` receives its exit code: 0 if nothing dead remains (or, with
/// --dry-run, would remain); 1 if something could not be removed, a lock could not be tested, or a
/// named job doesn't exist or isn't dead.
void add_sweep(CLI::App& app, int& code);

}  // namespace weft
