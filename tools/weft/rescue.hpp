#pragma once
/// `weft rescue`: makes a checkpoint of the last step of a job whose processes are dead.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`.
void add_rescue(CLI::App& app, int& code);

}  // namespace weft
