#pragma once
/// `weft import`: makes a checkpoint of the tensors of another program's files.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`.
void add_import(CLI::App& app, int& code);

}  // namespace weft
