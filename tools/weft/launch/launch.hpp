#pragma once
/// `weft launch -n 4 --chips 4 -- ./program args`: runs a program. The options replace the numbers
/// of workers and chips that its fit() asks for.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code` to the exit code of the job's first failure: 128 +
/// the signal that killed a worker, or the exit code of a worker. If no worker failed, `code` is
/// the program's exit code.
void add_launch(CLI::App& app, int& code);

}  // namespace weft
