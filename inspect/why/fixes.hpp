#pragma once
/// The advice for each root: its `fix:` line.

#include <string>
#include <vector>

#include "inspect/why/why.hpp"

namespace weft {

/// Sets the `fix` of roots that have none. A single command continues all stopped processes, the
/// trainer first, because workers can't do much while the trainer is stopped.
void add_fixes(std::vector<Root>& roots, const Snapshot& now);

}  // namespace weft
