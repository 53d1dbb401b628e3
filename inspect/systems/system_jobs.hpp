#pragma once
/// SystemJobs: reads the jobs with which the meshes of an actor system end.

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Adds the jobs of the meshes that haven't ended. A job that can't be read is added too, and
/// `remarks` names the reason unless the job is gone.
void add_jobs(SystemSnapshot& system);

}  // namespace weft
