#pragma once
/// `weft launch --hosts h1,h2 -- ./program`: starts a program once on each of several hosts.

#include <string>

#include "tools/weft/launch/options.hpp"

namespace weft {

/// Runs the program on options.hosts through options.via, and shows the output of each host with
/// its name. Host 0 makes a secret. It arrives here over the connection to host 0, and is passed on
/// over the connections to the other hosts, so it is never on a command line. A signal to end is
/// passed on to host 0. When this process ends, the program ends on all hosts. Returns the exit
/// code of host 0. Throws invalid_argument for options that --hosts excludes, and io.
int launch_on_hosts(const LaunchOptions& options);

/// Returns the command line for a host's shell; `--dry-run` shows it. `weft` is the path of this
/// command on the host.
std::string host_command(const LaunchOptions& options, int index, const std::string& weft);

}  // namespace weft
