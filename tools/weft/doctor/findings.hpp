#pragma once
/// The findings about a machine, as pure functions of the facts that were read.

#include <string>
#include <vector>

#include "tools/weft/doctor/machine.hpp"

namespace weft {

enum class Level {
  good,
  advice,   ///< jobs run, but could run better
  refusal,  ///< no job can run
};
const char* to_string(Level level);

struct Finding {
  std::string what;
  std::string found;
  Level level = Level::good;
  std::string advice{};  ///< with the command that fixes it; empty: nothing to fix
};

/// Returns the findings in the order in which they are shown.
std::vector<Finding> examine(const Machine& machine);

/// Whether the smallest job can run.
bool is_usable(const std::vector<Finding>& findings);

}  // namespace weft
