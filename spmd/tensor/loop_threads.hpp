#pragma once
/// LoopThreads: the threads of this process that run training loops or Sessions, and the errors for
/// calls on other threads. Only the files of this folder use it. TensorSession: runs tensors of a
/// thread outside of training loops.

#include <memory>
#include <source_location>
#include <vector>

#include "spmd/tensor/node.hpp"

namespace weft {

class Trace;

/// A function that returns the calling thread's id (gettid). The code that starts training loops
/// provides it, because spmd itself doesn't use threads. Without this function, ids are 0.
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

/// Makes `runtime`, whose is_session() is true, run tensors of the thread that makes this object. A
/// thread may have several sessions, each with its own tensors. If the thread has ended, any thread
/// may destroy the session.
class TensorSession {
 public:
  explicit TensorSession(Runtime& runtime);
  ~TensorSession();
  TensorSession(const TensorSession&) = delete;
  TensorSession& operator=(const TensorSession&) = delete;

  /// Makes this session run the thread's tensors until another session is entered. Throws
  /// invalid_argument in a training loop, or on a thread other than the session's.
  void enter(const std::source_location& loc);
  /// Runs the recorded ops for the tensors that are still alive, and drops the other ops.
  void run(const RunSite& site);

  /// Returns the buffer that has the state's value, or null if the state isn't on chips.
  static BufferPtr find_buffer(const Tensor& state);
  /// Sets the state's value to this buffer. No recorded op may use the state.
  static void set_buffer(const Tensor& state, BufferPtr buffer);

 private:
  std::unique_ptr<Trace> trace_;
  int thread_;
};

/// Throws the error for a call on a thread that has neither a training loop nor a bound Session:
/// invalid_argument with the ids of the threads that have one, or not_found if there are none.
[[noreturn]] void fail_off_thread(const std::source_location& loc);
/// Throws invalid_argument for a tensor of another thread's trace, or of a trace that ended before
/// the tensor was computed.
[[noreturn]] void fail_lost(const TensorNode& node, const std::source_location& loc);

}  // namespace weft
