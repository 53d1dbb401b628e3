#pragma once
/// Suggestions for unknown words on a command line.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

/// Describes the first word that is neither a command nor an option of `app`: "there is no command
/// \"lunch\": did you mean launch? weft has ...". Returns "" if the error isn't an unknown word.
std::string say_unknown(const CLI::App& app, const std::vector<std::string>& words);

/// Returns the words with mpirun's options (-np) replaced by the names that `app` has for them. The
/// words of the launched program stay unchanged.
std::vector<std::string> translated(const CLI::App& app, std::vector<std::string> words);

}  // namespace weft
