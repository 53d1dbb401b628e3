#pragma once
/// `weft inspect ps`, `show`, `actors` and `mesh`: show jobs, their actors and their chips.

#include <string>

#include <CLI/CLI.hpp>

namespace weft {

/// These functions implement `weft inspect ps` and `show`, and return the exit code.
int list_jobs(bool json);
int show_job(const std::string& job, bool json);

/// Adds the subcommands to `inspect`. Running one sets `code`, see job.hpp.
void add_inspect_views(CLI::App& inspect, int& code);

}  // namespace weft
