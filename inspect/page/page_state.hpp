#pragma once
/// What the head, the mesh and the table of the page of `weft inspect serve` show of a job.

#include <string>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// Returns JSON. `before`: an earlier snapshot, since which cores are counted; null: they aren't
/// known. Times are seconds of CLOCK_BOOTTIME, of which the page knows the present, so that the
/// text of a job that doesn't change doesn't change either.
std::string page_state(const Snapshot& job, const Why& why, const Snapshot* before = nullptr);

/// Returns the stack of an actor's thread, {"frames": [{"function", "file", "line"}], "why_not"},
/// from the snapshot's sights, or else from the roots of `why`.
std::string stack_json(const Snapshot& job, const Why& why, const std::string& actor);

}  // namespace weft
