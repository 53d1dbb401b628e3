#pragma once
/// Options that `weft launch` passes to a program's fit(), and the exit code that it gets back:
/// WEFT_LAUNCH_WORKERS, WEFT_LAUNCH_CHIPS, WEFT_LAUNCH_TOPOLOGY, WEFT_LAUNCH_MAX_FAILURES,
/// WEFT_LAUNCH_RESUME and WEFT_LAUNCH_RESULT. In a program that is started again after it was
/// killed, WEFT_LAUNCH_GO_ON, "2:/path": its second fit() goes on from this checkpoint, or from the
/// newest in this folder; WEFT_LAUNCH_RESCUED is the rescued.json of the job before.

#include <weft/result.hpp>

namespace weft {

/// Replaces the options of the program's `fit_number`-th fit() by those of the variables. Throws
/// invalid_argument.
void apply_launch_variables(ScalingConfig& scaling, RunConfig& run, int fit_number);

/// Seconds for which a launcher that starts the program again wants the state of a dead job to be
/// kept, whatever the program asks for; 0: no such launcher started it. Throws invalid_argument.
double launcher_keeps_s();

/// The rescued.json of the job that the program's `fit_number`-th fit() continues, where a launcher
/// has started the program again for that; else "".
std::string note_of_launcher(int fit_number);

/// Writes the job's first cause to the file WEFT_LAUNCH_RESULT, if it is set and the job failed, in
/// three lines: the exit code (128 + the signal that killed a worker or that asked this program to
/// end, or the worker's, else 1), the run folder, the message.
void note_exit_code(const Result& result);

}  // namespace weft
