#pragma once
/// Reads actor systems from outside. Only reads, so a system that runs, hangs or is dead isn't
/// disturbed, even if the reader fails.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Returns the ids of this user's actor systems, sorted: also of dead ones, whose memory remains
/// until the next job or actor system of the user removes it.
std::vector<std::string> actor_systems();

/// Returns those whose id begins with `asked`, or whose name is `asked`. An empty text selects all.
std::vector<std::string> find_actor_systems(std::string_view asked);

/// Reads a system now. Throws not_found, version or corrupt if its table can't be read. Other parts
/// that can't be read are absent, and named by `remarks`.
SystemSnapshot read_actor_system(const std::string& id);

}  // namespace weft
