#pragma once
/// The checks of a job's RunConfig.

#include <weft/config.hpp>

namespace weft {

/// Throws invalid_argument, naming the field, the value and what was expected.
void check_run(const RunConfig& run, bool has_mesh);

}  // namespace weft
