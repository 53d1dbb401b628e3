#pragma once
/// `weft plan`: what a program's first step, or a dumped plan, runs on its mesh.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; running it sets `code`: 0, or 3 where there is no first step that this
/// machine can run.
void add_plan(CLI::App& app, int& code);

}  // namespace weft
