#pragma once
/// How `weft launch` tells a program's fit() what was asked for on its command line, and hears how
/// it ended: WEFT_LAUNCH_WORKERS, WEFT_LAUNCH_CHIPS, WEFT_LAUNCH_TOPOLOGY, WEFT_LAUNCH_MAX_FAILURES
/// and WEFT_LAUNCH_RESULT.

#include <weft/result.hpp>

namespace weft {

/// Puts what the variables say in place of the program's own numbers. Throws invalid_argument.
void apply_launch_variables(ScalingConfig& scaling, FailureConfig& failure);

/// Writes the exit code of the job's first cause to the file WEFT_LAUNCH_RESULT, if it is set and
/// the job failed: 128 + signal, or the worker's exit code, else 1.
void note_exit_code(const Result& result);

}  // namespace weft
