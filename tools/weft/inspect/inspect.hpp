#pragma once
/// `weft inspect`: the jobs of this user; what every actor of one does, read from its board; or the
/// tensors of a checkpoint.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; running it sets `code`, see job.hpp.
void add_inspect(CLI::App& app, int& code);

}  // namespace weft
