#pragma once
/// What the head, the mesh and the table of the page of `weft inspect serve` show of a job.

#include <string>

#include "inspect/snapshot/snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// As JSON. Times are seconds of CLOCK_BOOTTIME, of which the page knows the present, so that the
/// text of a job that doesn't change doesn't change either.
std::string page_state(const Snapshot& job, const Why& why);

}  // namespace weft
