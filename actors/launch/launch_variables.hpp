#pragma once
/// Options that `weft launch` passes to a program's fit(), and the exit code that it gets back:
/// WEFT_LAUNCH_WORKERS, WEFT_LAUNCH_CHIPS, WEFT_LAUNCH_TOPOLOGY, WEFT_LAUNCH_MAX_FAILURES and
/// WEFT_LAUNCH_RESULT.

#include <weft/result.hpp>

namespace weft {

/// Replaces the program's own options by those of the variables. Throws invalid_argument.
void apply_launch_variables(ScalingConfig& scaling, FailureConfig& failure);

/// Writes the exit code of the job's first cause to the file WEFT_LAUNCH_RESULT, if it is set and
/// the job failed: 128 + signal, or the worker's exit code, else 1.
void note_exit_code(const Result& result);

}  // namespace weft
