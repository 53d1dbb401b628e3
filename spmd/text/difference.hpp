#pragma once
/// The differences between two programs, which explain why the second one had to be compiled.

#include <cstddef>
#include <string>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// Causes are for people, the likeliest first, each with the values before and after, the user's
/// file:line and how to keep the program the same; empty for equal programs.
struct Differences {
  std::vector<std::string> causes;
  /// How far apart the programs are, for choosing the nearest of several.
  std::size_t distance = 0;
};
Differences differences(const Program& before, const Program& after);

}  // namespace weft
