#pragma once
/// LoopThreads: the threads of this process that run loops, and what is told to the others. For the
/// files of this folder.

#include <source_location>
#include <vector>

#include "spmd/tensor/node.hpp"

namespace weft {

/// Gives the calling thread's number, as the system knows it (gettid). This floor knows no threads:
/// the numbers are 0 until whoever makes loops has set one.
using ThreadNumber = int (*)();
void set_thread_number(ThreadNumber function);
int this_thread_number();

/// Those in a RuntimeScope, once for each, but for what is beyond kLoopsNamed. Used by any thread.
class LoopThreads {
 public:
  static void add(int thread);
  static void remove(int thread);
  static std::vector<int> all();
};

/// Throws for a call on a thread that runs no loop: not_found, or invalid_argument with the threads
/// that do.
[[noreturn]] void fail_off_thread(const std::source_location& loc);
/// Throws invalid_argument for the use of a tensor whose trace isn't the calling thread's, or ended
/// without a run.
[[noreturn]] void fail_lost(const TensorNode& node, const std::source_location& loc);

}  // namespace weft
