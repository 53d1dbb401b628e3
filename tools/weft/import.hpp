#pragma once
/// weft import: makes a checkpoint of the tensors of another program's files.

#include <CLI/CLI.hpp>

namespace weft {

/// `code`: the exit code once it has run.
void add_import(CLI::App& app, int& code);

}  // namespace weft
