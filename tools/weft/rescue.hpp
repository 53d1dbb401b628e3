#pragma once
/// weft rescue: makes a checkpoint of the last step of a job whose processes are dead.

#include <CLI/CLI.hpp>

namespace weft {

/// `code`: the exit code once it has run.
void add_rescue(CLI::App& app, int& code);

}  // namespace weft
