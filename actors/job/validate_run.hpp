#pragma once
/// The checks of a job's RunConfig.

#include <weft/job/config.hpp>

#include "spmd/target/target.hpp"

namespace weft {

/// Throws invalid_argument, naming the field, the value and what was expected.
void check_run(const RunConfig& run, bool has_mesh);

/// Throws invalid_argument if the job is to keep its state in the memory of chips on which it would
/// not stay: chips of a target without `keeps_memory`.
void check_kept_state(const RunConfig& run, const Target& target);

}  // namespace weft
