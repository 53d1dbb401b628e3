#pragma once
/// Finds the differences between two programs, which explain why the second program had to be
/// compiled.

#include <cstddef>
#include <string>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// `causes` are texts for the user, the most likely cause first. Each text has the values before
/// and after, the user's file:line, and advice on how to keep the program the same. Equal programs
/// have no causes.
struct Differences {
  std::vector<std::string> causes;
  /// Measures how much the programs differ, so that the most similar of several programs can be
  /// chosen.
  std::size_t distance = 0;
};
Differences differences(const Program& before, const Program& after);

}  // namespace weft
