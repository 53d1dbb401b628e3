#pragma once
/// SystemReader: reads actor systems from outside. It only reads, so it disturbs no system that
/// runs, hangs or is dead, even if the reader fails.

#include <string>
#include <string_view>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Returns the ids of this user's actor systems, sorted. They include dead systems, whose memory
/// remains until the user's next job or actor system removes it.
std::vector<std::string> actor_systems();

/// Returns the ids of the actor systems whose id begins with `asked`, or whose name is `asked`. An
/// empty text selects all.
std::vector<std::string> find_actor_systems(std::string_view asked);

/// The parts of a system that a reader may leave out.
struct SystemParts {
  bool jobs = true;  ///< the jobs with which meshes end, which take milliseconds to read
};

/// Reads a system now. Throws not_found, version or corrupt if the system's table can't be read.
/// Other parts that can't be read are missing in the result, and `remarks` names them.
SystemSnapshot read_actor_system(const std::string& id, const SystemParts& parts = {});

}  // namespace weft
