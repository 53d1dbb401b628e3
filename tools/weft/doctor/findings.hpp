#pragma once
/// Finds what this machine can't do for jobs, or could do better.

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
  std::string advice{};  ///< advice with a command that helps; empty: no advice
};

/// Returns the findings in the order in which they are shown.
std::vector<Finding> examine(const Machine& machine);

/// Returns whether the smallest job can run.
bool is_usable(const std::vector<Finding>& findings);

}  // namespace weft
