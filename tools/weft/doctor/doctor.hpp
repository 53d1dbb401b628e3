#pragma once
/// `weft doctor`: shows what this machine offers to jobs, and how to improve it.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`: 0, or 1 if no job can run.
void add_doctor(CLI::App& app, int& code);

}  // namespace weft
