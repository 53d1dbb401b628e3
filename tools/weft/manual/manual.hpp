#pragma once
/// `weft completions SHELL` and `weft man [COMMAND]`: hidden commands by which the build makes the
/// files that it installs.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds both commands. They describe `app` as it is when they run, so other commands may be added
/// later.
void add_manual(CLI::App& app, int& code);

}  // namespace weft
