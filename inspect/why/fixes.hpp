#pragma once
/// Fixes: finds the advice for each root, its `fix:` line.

#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// Sets the `fix` of each root that has none. If several processes are stopped, one command
/// continues all of them. The command begins with the trainer, because workers can't do much while
/// the trainer is stopped.
void add_fixes(std::vector<Root>& roots, const Snapshot& now);

/// Returns the advice for a job that doesn't continue although no root is known.
std::string fix_of_unknown(const Snapshot& now);

}  // namespace weft
