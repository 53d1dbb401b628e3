#pragma once
/// `weft inspect`: shows the jobs of this user, the actors of a job (read from its board), or the
/// tensors of a checkpoint.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`, see job.hpp.
void add_inspect(CLI::App& app, int& code);

}  // namespace weft
