#pragma once
/// worker_main(): the first line of main() in a program whose jobs have worker processes.

#include <string>

namespace weft {

/// In the application: returns at once, and workers of its named loops can be started from then on.
/// In a worker process: connects, runs the loop of its job and ends the process; nothing behind
/// this line runs there, and of what comes before it only constructors of static variables. Loops
/// without a name still run main() up to their fit().
void worker_main(int argc, char** argv);

/// Whether this process is a worker of a job: for static constructors that would open a port or
/// start a thread. May be called before main(), on any thread.
bool in_worker() noexcept;

/// The path of the program `weft-worker`, for ScalingConfig::worker_executable: it runs loops of
/// shared libraries whose host doesn't call worker_main(). Throws not_found.
std::string plugin_worker();

}  // namespace weft
