#pragma once
/// Finds the advice for each root: its `fix:` line.

#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// Sets the `fix` of roots that have none. If several processes are stopped, one command continues
/// all of them. It begins with the trainer, because workers can't do much while the trainer is
/// stopped.
void add_fixes(std::vector<Root>& roots, const Snapshot& now);

}  // namespace weft
