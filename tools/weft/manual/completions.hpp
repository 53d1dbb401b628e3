#pragma once
/// Scripts that let a shell complete the words of a command line.

#include <string>

#include "tools/weft/manual/command_text.hpp"

namespace weft {

/// `shell` is bash, zsh or fish. Throws invalid_argument for another one.
std::string completions(const CommandText& program, const std::string& shell);

}  // namespace weft
