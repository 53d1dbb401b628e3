#pragma once
/// `weft launch -n 4 --chips 4 -- ./program args`: runs a program with these numbers of workers and
/// chips instead of those that its fit() asks for.

#include <CLI/CLI.hpp>

namespace weft {

struct LaunchOptions;
/// Starts the program on the hosts of --hosts, and returns the exit code.
using LaunchOnHosts = int (*)(const LaunchOptions& options);

/// Adds the subcommand. Running it sets `code` to the exit code of the worker that failed first, or
/// to 128 + the signal that killed this worker. If no worker failed, `code` is the program's exit
/// code.
void add_launch(CLI::App& app, int& code, LaunchOnHosts on_hosts);

}  // namespace weft
