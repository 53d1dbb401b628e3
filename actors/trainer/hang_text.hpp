#pragma once
/// The words for workers that hang.

#include <string>

#include "actors/protocol/sighting.hpp"
#include "actors/supervision/hang_watch.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// "others have waited 5 s for it".
std::string describe(const Hang& hang, double seconds);

/// Logs the stack that a worker which hangs has written, if there is one.
void warn_of_stack(int worker, const std::string& run_dir);

/// With where the process of a worker that hangs writes its stack.
Sighting with_stack(Sighting seen, const JobSpec& spec, const std::string& run_dir);

}  // namespace weft
