#pragma once
/// Checks a job's RunConfig.

#include <weft/job/config.hpp>

#include "spmd/target/target.hpp"

namespace weft {

/// Throws invalid_argument with the field, its value and the expected value.
void check_run(const RunConfig& run, bool has_mesh);

/// Throws invalid_argument if the job is to keep its state in the memory of its chips and the
/// target has no `keeps_memory`, because the state would be lost.
void check_kept_state(const RunConfig& run, const Target& target);

}  // namespace weft
