#pragma once
/// Man pages, in the language of roff.

#include <string>

#include "tools/weft/manual/command_text.hpp"

namespace weft {

/// The page of one command: "weft-launch" for "weft launch". `version`: of weft.
std::string man_page(const CommandText& command, const std::string& version);

/// "weft-launch": the page's name without its section.
std::string man_name(const CommandText& command);

}  // namespace weft
