#pragma once
/// LoopThreads: the threads of this process that run loops, and the errors for calls on other
/// threads. For the files of this folder.

#include <source_location>
#include <vector>

#include "spmd/tensor/node.hpp"

namespace weft {

/// Returns the calling thread's id (gettid). This floor uses no threads: ids are 0 until the code
/// that makes loops has set a function.
using ThreadNumber = int (*)();
void set_thread_number(ThreadNumber function);
int this_thread_number();

/// The threads in a RuntimeScope, each once, at most kLoopsNamed. May be used by any thread.
class LoopThreads {
 public:
  static void add(int thread);
  static void remove(int thread);
  static std::vector<int> all();
};

/// Throws for a call on a thread that runs no loop: not_found, or invalid_argument with the threads
/// that do.
[[noreturn]] void fail_off_thread(const std::source_location& loc);
/// Throws invalid_argument for a tensor whose trace isn't the calling thread's, or ended without a
/// run.
[[noreturn]] void fail_lost(const TensorNode& node, const std::source_location& loc);

}  // namespace weft
