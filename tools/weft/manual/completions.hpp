#pragma once
/// Makes the scripts with which a shell completes the words of a command line.

#include <string>

#include "tools/weft/manual/command_text.hpp"

namespace weft {

/// Returns the script for a shell: bash, zsh or fish. Throws invalid_argument for another one.
std::string completions(const CommandText& program, const std::string& shell);

}  // namespace weft
