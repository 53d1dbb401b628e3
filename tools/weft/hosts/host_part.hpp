#pragma once
/// `weft host-part -- ./program`: the half of `weft launch --hosts` that runs on each host. It is
/// not for users.

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace weft {

/// The launcher and the host's half exchange lines. The launcher writes to the host's standard
/// input: first a mark, then "file TEXT" with the rendezvous file of host 0, and "signal TERM". The
/// host's half writes between the lines of the program's output; its lines begin with the mark:
/// "MARK ready", "MARK file TEXT".
inline constexpr std::string_view kReadyWord = " ready";
inline constexpr std::string_view kFileWord = " file ";
inline constexpr std::string_view kSignalWord = "signal ";

/// Adds the subcommand. Running it starts the program, and ends it when the standard input ends.
/// `code` becomes the exit code of the program.
void add_host_part(CLI::App& app, int& code);

}  // namespace weft
