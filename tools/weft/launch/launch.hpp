#pragma once
/// `weft launch -n 4 --chips 4 -- ./program args`: runs a program. The options replace the numbers
/// of workers and chips that its fit() asks for.

#include <CLI/CLI.hpp>

namespace weft {

struct LaunchOptions;
/// Starts the program on the hosts of --hosts, and returns the exit code.
using LaunchOnHosts = int (*)(const LaunchOptions& options);

/// Adds the subcommand. Running it sets `code` to the exit code of the job's first failure: 128 +
/// the signal that killed a worker, or the exit code of a worker. If no worker failed, `code` is
/// the program's exit code.
void add_launch(CLI::App& app, int& code, LaunchOnHosts on_hosts);

}  // namespace weft
