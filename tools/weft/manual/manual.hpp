#pragma once
/// `weft completions SHELL` and `weft man [COMMAND]`: hidden commands with which the build makes
/// the completions and man pages that it installs.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds both commands. They describe `app` as it is when they run, so other commands may be added
/// after this call.
void add_manual(CLI::App& app, int& code);

}  // namespace weft
