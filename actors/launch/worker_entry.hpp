#pragma once
/// The entry points of a worker process: worker_main(), and a function that weft-worker calls in a
/// library whose host program doesn't use weft.

#include <optional>

#include "actors/link/environment.hpp"

namespace weft {

/// Returns the worker environment of this process. The first call removes the job's secrets from
/// the environment, so that a worker's children aren't workers. Throws the errors of
/// worker_environment().
const std::optional<WorkerEnvironment>& this_worker();

/// Returns whether the program has called worker_main().
bool called_worker_main() noexcept;
/// Returns whether the object file that contains `address` was loaded before the program called
/// worker_main(). If it was, a Loop that is made there now is a local variable. (Each Loop calls
/// this function, so the linker keeps this file, with the entry for weft-worker, wherever there is
/// a Loop.)
bool was_loaded_before_main(const void* address);

/// Makes this process a worker: connects stdout and stdin to the descriptors that the trainer's
/// process has passed (environment.hpp), and gives the thread the program's name.
void begin_worker_output();
/// Flushes stdout and stderr, and ends the process.
[[noreturn]] void end_worker_process(int code);

}  // namespace weft
