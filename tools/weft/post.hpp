#pragma once
/// `weft post`: posts a command to the loops of a running job.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`.
void add_post(CLI::App& app, int& code);

}  // namespace weft
