#pragma once
/// `weft inspect ps`, `show`, `actors` and `mesh`.

#include <string>

#include <CLI/CLI.hpp>

namespace weft {

/// As `ps` and `show`; return the exit code.
int list_jobs(bool json);
int show_job(const std::string& job, bool json);

/// Adds the subcommands to `inspect`; running one sets `code`, see job.hpp.
void add_inspect_views(CLI::App& inspect, int& code);

}  // namespace weft
