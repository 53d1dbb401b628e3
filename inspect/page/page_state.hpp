#pragma once
/// PageState: makes the data for the head, the mesh and the table of `weft inspect serve`'s page.

#include <span>
#include <string>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// Returns the page's data as JSON. `systems` are the actor systems of the job's program. `before`
/// is an earlier snapshot, from which the use of cores is computed; if it is null, the use is
/// unknown. Times are seconds of CLOCK_BOOTTIME. The text doesn't contain the present time, so it
/// stays the same while the job doesn't change.
std::string page_state(const Snapshot& job, const Why& why, const Snapshot* before = nullptr,
                       std::span<const SystemSnapshot> systems = {});

/// Returns the stack of an actor's thread, {"frames": [{"function", "file", "line"}], "why_not"}.
/// The stack is from the snapshot's sights, or else from the roots of `why`.
std::string stack_json(const Snapshot& job, const Why& why, const std::string& actor);

}  // namespace weft
