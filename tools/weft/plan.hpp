#pragma once
/// `weft plan`: what a dumped plan runs on its mesh.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; running it sets `code`: 0, or 2 where the file is no plan.
void add_plan(CLI::App& app, int& code);

}  // namespace weft
