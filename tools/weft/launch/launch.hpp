#pragma once
/// `weft launch -n 4 --chips 4 -- ./program args`: runs a program whose fit() takes its numbers of
/// workers and chips from here.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; running it sets `code` to the exit code of the job's first cause: 128 + the
/// signal that killed a worker, the code a worker exited with, else what the program returned.
void add_launch(CLI::App& app, int& code);

}  // namespace weft
