#pragma once
/// `weft devices`: lists the chips of this machine and the PJRT plug-ins that drive them.

#include <CLI/CLI.hpp>

namespace weft {

/// Adds the subcommand. Running it sets `code`: 0, or 1 if a plug-in can't be used.
void add_devices(CLI::App& app, int& code);

}  // namespace weft
