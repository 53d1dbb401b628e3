#pragma once
/// Checks that the system has what every job needs.

#include <string>

namespace weft {

/// Throws unavailable, with the call's place and the remedy, if /proc isn't mounted or if threads
/// have stacks that are too small for weft's code.
void require_surroundings(const std::string& site);

}  // namespace weft
