#pragma once
/// The words for workers that hang.

#include <string>

#include "actors/protocol/sighting.hpp"
#include "actors/supervision/hang_watch.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// "others have waited 5 s for it".
std::string describe(const Hang& hang, double seconds);

/// With where the process (`pid`) of a worker that hangs writes its stack, or would if it is asked.
Sighting with_stack(Sighting seen, int pid, const JobSpec& spec, const std::string& run_dir);

}  // namespace weft
