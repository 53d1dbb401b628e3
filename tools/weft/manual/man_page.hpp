#pragma once
/// Man pages, in the language of roff.

#include <string>

#include "tools/weft/manual/command_text.hpp"

namespace weft {

/// Returns the page of one command: "weft-launch" for "weft launch". `version` is weft's.
std::string man_page(const CommandText& command, const std::string& version);

/// Returns the page's name without its section, "weft-launch".
std::string man_name(const CommandText& command);

}  // namespace weft
