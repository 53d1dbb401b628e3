#pragma once
/// Reads the options that `weft launch` passes to a program's fit() in WEFT_LAUNCH_WORKERS,
/// WEFT_LAUNCH_CHIPS, WEFT_LAUNCH_TOPOLOGY, WEFT_LAUNCH_MAX_FAILURES and WEFT_LAUNCH_RESUME. Writes
/// the exit code to the file that WEFT_LAUNCH_RESULT names. Two more variables are for a program
/// that is started again after it was killed: WEFT_LAUNCH_GO_ON, for example "2:/path", makes its
/// second fit() continue from the checkpoint /path, or from the newest one in the folder /path.
/// WEFT_LAUNCH_RESCUED is the path of the previous job's rescued.json.

#include <weft/job/result.hpp>

namespace weft {

/// Replaces the options of the program's `fit_number`-th fit() by those in the variables. Throws
/// invalid_argument for malformed variables.
void apply_launch_variables(ScalingConfig& scaling, RunConfig& run, int fit_number);

/// Returns the least number of seconds for which the state of a dead job must be kept: 0 unless a
/// launcher would start the program again. Throws invalid_argument.
double launcher_keeps_s();

/// If a launcher has started the program again, to continue a job by the program's `fit_number`-th
/// fit(), returns the path of that job's rescued.json; otherwise "".
std::string note_of_launcher(int fit_number);

/// If the job failed and WEFT_LAUNCH_RESULT is set, writes the job's first cause to that file in
/// three lines: the exit code, the run folder, the message. The exit code is 128 + the signal that
/// killed a worker or that asked this program to end, else the worker's exit code, else 1.
void note_exit_code(const Result& result);

}  // namespace weft
