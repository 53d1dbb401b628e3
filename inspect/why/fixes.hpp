#pragma once
/// The advice for each root, its `fix:` line.

#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// Sets the `fix` of those that have none. Of processes that are stopped, all are continued by one
/// command, the trainer first: workers whose trainer stays stopped don't get far.
void add_fixes(std::vector<Root>& roots, const Snapshot& now);

}  // namespace weft
