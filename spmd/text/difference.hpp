#pragma once
/// Finds the differences between two programs, which explain why the second had to be compiled.

#include <cstddef>
#include <string>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft {

/// The causes are texts for people; the likeliest comes first. Each has the values before and
/// after, the user's file:line and advice on how to keep the program the same. Equal programs have
/// no causes.
struct Differences {
  std::vector<std::string> causes;
  /// Measures how much the programs differ, so that the most similar of several can be chosen.
  std::size_t distance = 0;
};
Differences differences(const Program& before, const Program& after);

}  // namespace weft
