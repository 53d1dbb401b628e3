#pragma once
/// SignalHub: receives the signals that end jobs, for threads that sleep in poll().

#include <cstdint>
#include <optional>

#include "actors/process/wake_queue.hpp"

namespace weft {

/// While one of these lives, SIGINT, SIGTERM and SIGHUP wake its job; an ignored signal stays
/// ignored (nohup). The first object of a process installs the handlers. The last one restores the
/// previous handlers, except those that the program has replaced meanwhile. All jobs receive a
/// signal, then the program's own handler is called, if it has one and a job chains.
class SignalSubscription {
 public:
  /// The maximum number of jobs of a process that receive signals.
  static constexpr int kCountMax = 64;

  /// `chain`: the program's own handlers are called too. Throws unavailable where there are
  /// kCountMax already.
  explicit SignalSubscription(bool chain);
  ~SignalSubscription();
  SignalSubscription(const SignalSubscription&) = delete;
  SignalSubscription& operator=(const SignalSubscription&) = delete;

  /// Readable once a signal has come.
  int fd() const { return wake_.fd(); }
  /// One of the signals received, each once; 0 for none.
  int take();
  /// Whether the program had no handler for it, so that its default action would end the program.
  static bool ends_the_program(int signal);
  /// Performs the signal's default action, even if this thread blocks it.
  static void end_the_program_by(int signal);

 private:
  WakeFd wake_;
  int slot_ = -1;
};

}  // namespace weft
