#pragma once
/// Where a worker process begins: worker_main(), or weft-worker in a library whose host has no
/// weft.

#include <optional>

#include "actors/link/environment.hpp"

namespace weft {

/// Of the process; its job's secrets are taken out of the environment at the first call, so that
/// programs that a worker starts aren't workers. Throws as worker_environment().
const std::optional<WorkerEnvironment>& this_worker();

/// The program has called worker_main().
bool called_worker_main() noexcept;
/// (Each Loop asks this, so linkers keep this file, with the entry for weft-worker, wherever there
/// is one.) The object that holds `address` was loaded before the program called worker_main(): a
/// loop that is made there now is a local variable.
bool was_loaded_before_main(const void* address);

/// This process is a worker from now on: its stdout is its own, and it has the program's name.
void begin_worker_output();
/// Flushes what was printed and ends the process.
[[noreturn]] void end_worker_process(int code);

}  // namespace weft
