#pragma once
/// `weft sweep`: removes what dead jobs have left.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; `code` gets its exit code: 0 when nothing dead is left (or was to be
/// removed, with --dry-run), 1 when something could not be removed, a lock could not be asked for,
/// or a job that was named isn't there or isn't dead.
void add_sweep(CLI::App& app, int& code);

}  // namespace weft
