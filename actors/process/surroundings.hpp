#pragma once
/// Checks that the system provides what every job needs.

#include <string>

namespace weft {

/// Throws unavailable if /proc isn't mounted, or if threads' stacks are too small for weft's code.
/// The message has `site`, the place of the call, and says what to do.
void require_surroundings(const std::string& site);

}  // namespace weft
