#pragma once
/// Makes texts about workers that hang.

#include <string>

#include "actors/protocol/sighting.hpp"
#include "actors/supervision/hang_watch.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Returns a text about how the worker hangs, such as "others have waited 5 s for it".
std::string describe(const Hang& hang, double seconds);

/// Logs the stack that a hanging worker has written, if there is one.
void warn_of_stack(int worker, const std::string& run_dir);

/// Returns the sighting, extended by the path of the file to which the hanging worker's process
/// writes its stack.
Sighting with_stack(Sighting seen, const JobSpec& spec, const std::string& run_dir);

}  // namespace weft
