#pragma once
/// Checks a job's RunConfig.

#include <weft/job/config.hpp>

#include "spmd/target/target.hpp"

namespace weft {

/// Throws invalid_argument, naming the field, its value and the expected value.
void check_run(const RunConfig& run, bool has_mesh);

/// Throws invalid_argument if the job shall keep its state in its chips' memory but the target
/// doesn't support that (`keeps_memory`), because the state would be lost.
void check_kept_state(const RunConfig& run, const Target& target);

}  // namespace weft
