#pragma once
/// What every job needs of the system that it runs on.

#include <string>

namespace weft {

/// Throws unavailable, with the call's place and the remedy, where /proc isn't mounted or threads
/// have stacks that are too small for weft's code.
void require_surroundings(const std::string& site);

}  // namespace weft
