#pragma once
/// LoopThreads: the threads of this process that run training loops or Sessions, and the errors for
/// calls on other threads. Only the files of this folder use it.

#include <source_location>
#include <vector>

#include "spmd/tensor/node.hpp"

namespace weft {

/// A function that returns the calling thread's id (gettid). spmd itself uses no threads, so the
/// code that starts training loops sets the function. Without one, ids are 0.
using ThreadNumber = int (*)();
void set_thread_number(ThreadNumber function);
int this_thread_number();

/// The list of the threads that have a RuntimeScope or TensorSession, at most kLoopsNamed of them.
/// Any thread may use it.
class LoopThreads {
 public:
  static void add(int thread);
  static void remove(int thread);
  static std::vector<int> all();
};

/// Throws for a call on a thread that runs no training loop and has no bound Session. The error is
/// not_found, or, if other threads have one, invalid_argument with their ids.
[[noreturn]] void fail_off_thread(const std::source_location& loc);
/// Throws invalid_argument for a tensor of another thread's trace, or of a trace that ended without
/// a run.
[[noreturn]] void fail_lost(const TensorNode& node, const std::source_location& loc);

}  // namespace weft
