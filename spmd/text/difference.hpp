#pragma once
/// The differences between two programs: why one had to be compiled.

#include <cstddef>
#include <string>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// For people, the likeliest cause first, each with the values before and after, the user's
/// file:line and how to keep the program the same; empty for equal programs.
struct Differences {
  std::vector<std::string> causes;
  /// How far apart the programs are, for choosing the nearest of several.
  std::size_t distance = 0;
};
Differences differences(const Program& before, const Program& after);

}  // namespace weft
