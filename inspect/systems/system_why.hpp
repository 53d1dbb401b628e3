#pragma once
/// Explains what keeps an actor system from continuing, for `weft inspect why`.

#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

struct SystemWhyOptions {
  /// Seconds that a function may take while others wait for it.
  double patience_s = 5;
};

/// Compares two looks at a system. A process counts as stopped, and a circle of calls as one, if
/// both looks have it. Why::names has the names of actors and processes.
Why explain_system(const SystemSnapshot& before, const SystemSnapshot& now,
                   const SystemWhyOptions& options = {});

/// Reads the stacks of the threads that the roots name. Their threads are stopped for less than a
/// millisecond.
void add_stacks(Why& why);

}  // namespace weft
