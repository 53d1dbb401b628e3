#pragma once
/// `weft doctor`: what this machine has for jobs, and what would make it better.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand; running it sets `code`: 0, or 1 where no job can run.
void add_doctor(CLI::App& app, int& code);

}  // namespace weft
