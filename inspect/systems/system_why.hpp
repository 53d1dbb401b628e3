#pragma once
/// SystemWhy: explains what keeps an actor system from continuing, for `weft inspect why`.

#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

struct SystemWhyOptions {
  /// The seconds that a function may take while others wait for it.
  double patience_s = 5;
};

/// Compares two snapshots of a system. A stopped process or a circle of calls counts only if both
/// snapshots show it. Why::names has the names of the actors and processes.
Why explain_system(const SystemSnapshot& before, const SystemSnapshot& now,
                   const SystemWhyOptions& options = {});

/// Reads the stacks of the threads that the roots name. Stops each thread for less than a
/// millisecond.
void add_stacks(Why& why);

}  // namespace weft
