#pragma once
/// `weft export`: writes the tensors of a checkpoint as safetensors or npy files.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code` to 0, or throws an Error.
void add_export(CLI::App& app, int& code);

}  // namespace weft
