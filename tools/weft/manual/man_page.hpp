#pragma once
/// Makes man pages in the language of roff.

#include <string>

#include "tools/weft/manual/command_text.hpp"

namespace weft {

/// Returns the man page of one command. `version` is the version of weft.
std::string man_page(const CommandText& command, const std::string& version);

/// Returns the name of the command's man page without its section: "weft-launch" for "weft launch".
std::string man_name(const CommandText& command);

}  // namespace weft
