#pragma once
/// Suggestions for words that the command line doesn't have.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace weft {

/// About the first of the words that no command of `app` and no option knows, as "there is no
/// command \"lunch\": did you mean launch? weft has ..."; "" where that isn't what is wrong.
std::string say_unknown(const CLI::App& app, const std::vector<std::string>& words);

/// The words as `app` takes them: those of mpirun that have another name here (-np) replaced, up
/// to the program that is launched.
std::vector<std::string> translated(const CLI::App& app, std::vector<std::string> words);

}  // namespace weft
