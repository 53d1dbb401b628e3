#pragma once
/// The options that `weft launch` passes to a program's fit(), and the exit code that it gets back:
/// WEFT_LAUNCH_WORKERS, WEFT_LAUNCH_CHIPS, WEFT_LAUNCH_TOPOLOGY, WEFT_LAUNCH_MAX_FAILURES,
/// WEFT_LAUNCH_RESUME and WEFT_LAUNCH_RESULT. Two more variables are for a program that is started
/// again after it was killed. WEFT_LAUNCH_GO_ON, for example "2:/path", makes its second fit()
/// continue from this checkpoint, or from the newest checkpoint in this folder. WEFT_LAUNCH_RESCUED
/// is the rescued.json of the previous job.

#include <weft/job/result.hpp>

namespace weft {

/// Replaces the options of the program's `fit_number`-th fit() by those in the variables. Throws
/// invalid_argument.
void apply_launch_variables(ScalingConfig& scaling, RunConfig& run, int fit_number);

/// Returns for how many seconds the state of a dead job must be kept, whatever the program asks
/// for. A launcher that starts the program again sets this; without such a launcher it is 0. Throws
/// invalid_argument.
double launcher_keeps_s();

/// If a launcher has started the program again to continue a job with the program's `fit_number`-th
/// fit(), returns the rescued.json of that job; else "".
std::string note_of_launcher(int fit_number);

/// If the job failed and WEFT_LAUNCH_RESULT is set, writes the job's first cause to that file in
/// three lines: the exit code, the run folder, the message. The exit code is 128 + the signal that
/// killed a worker or that asked this program to end, else the worker's exit code, else 1.
void note_exit_code(const Result& result);

}  // namespace weft
