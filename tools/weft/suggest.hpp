#pragma once
/// Makes suggestions for unknown words on a command line.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

/// Describes the first word that is neither a command nor an option of `app`: "there is no command
/// \"lunch\": did you mean launch? weft has ...". Returns "" if the error isn't an unknown word.
std::string say_unknown(const CLI::App& app, const std::vector<std::string>& words);

/// Returns the words as `app` takes them: options of mpirun that have another name here (-np) are
/// replaced, up to the program that is launched.
std::vector<std::string> translated(const CLI::App& app, std::vector<std::string> words);

}  // namespace weft
