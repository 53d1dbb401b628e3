#pragma once
/// `weft plan`: shows what a program's first step, or a plan in a file, runs on its mesh.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`: 0, or 3 if there is no first step that this machine
/// can run.
void add_plan(CLI::App& app, int& code);

}  // namespace weft
