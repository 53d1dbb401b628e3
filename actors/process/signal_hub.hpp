#pragma once
/// The signals that end jobs, for threads that sleep in poll().

#include <cstdint>
#include <optional>

#include "actors/process/wake_queue.hpp"

namespace weft {

/// While one of these lives, SIGINT, SIGTERM and SIGHUP wake its job; one that was ignored stays so
/// (nohup). The first one of a process installs the handlers, the last one puts back what was
/// there, but for those that the program has replaced meanwhile. All jobs that live are told of a
/// signal, then the program's own handler is called, if it had one and a job chains.
class SignalSubscription {
 public:
  /// So many jobs of a process can be told.
  static constexpr int kCountMax = 64;

  /// `chain`: the program's own handlers are called too. Throws unavailable where there are
  /// kCountMax already.
  explicit SignalSubscription(bool chain);
  ~SignalSubscription();
  SignalSubscription(const SignalSubscription&) = delete;
  SignalSubscription& operator=(const SignalSubscription&) = delete;

  /// Readable once a signal has come.
  int fd() const { return wake_.fd(); }
  /// One of those that have come, each once; 0 for none.
  int take();
  /// Whether the program had no handler of its own for it: what it means to it is its end.
  static bool ends_the_program(int signal);
  /// As its default action does, whatever this thread blocks.
  static void end_the_program_by(int signal);

 private:
  WakeFd wake_;
  int slot_ = -1;
};

}  // namespace weft
