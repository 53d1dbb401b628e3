#pragma once
/// `weft launch --hosts h1,h2 -- ./program`: starts a program once on each of several hosts.

#include <string>

#include "tools/weft/launch/options.hpp"

namespace weft {

/// Runs the program on options.hosts through options.via, and shows the output of each host with
/// its name. Host 0 makes a secret, which comes here over its connection and goes on to the other
/// hosts over theirs, so that it is never on a command line. A signal to end is passed on to host
/// 0. The end of this process ends the program on all hosts. Returns the exit code of host 0.
/// Throws invalid_argument for options that this way of starting doesn't have, and io.
int launch_on_hosts(const LaunchOptions& options);

/// Returns the command that a host's shell is given, for `--dry-run` too. `weft` is the path of
/// this command there.
std::string host_command(const LaunchOptions& options, int index, const std::string& weft);

}  // namespace weft
