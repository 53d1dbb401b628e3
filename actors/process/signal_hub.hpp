#pragma once
/// SignalHub: receives the signals that end jobs, for threads that sleep in poll().

#include <cstdint>
#include <optional>

#include "actors/process/wake_queue.hpp"

namespace weft {

/// While a subscription lives, SIGINT, SIGTERM and SIGHUP wake its job. An ignored signal stays
/// ignored (nohup). The first subscription of a process installs the handlers. The last one
/// restores the previous handlers, except where the program has replaced the handlers since. Every
/// job receives each signal. If a job chains and the program has its own handler, that handler is
/// called afterwards.
class SignalSubscription {
 public:
  /// The limit on jobs of a process that receive signals.
  static constexpr int kCountMax = 64;

  /// With `chain`, the program's own handlers are called too. Throws unavailable if there are
  /// kCountMax subscriptions already.
  explicit SignalSubscription(bool chain);
  ~SignalSubscription();
  SignalSubscription(const SignalSubscription&) = delete;
  SignalSubscription& operator=(const SignalSubscription&) = delete;

  /// Returns a descriptor that becomes readable when a signal has been received.
  int fd() const { return wake_.fd(); }
  /// Returns a signal that was received, each one once; 0 if there is none.
  int take();
  /// Returns whether the program had no handler for the signal, so that the signal would end it.
  static bool ends_the_program(int signal);
  /// Ends the program by the signal's default action, even if this thread blocks the signal.
  static void end_the_program_by(int signal);

 private:
  WakeFd wake_;
  int slot_ = -1;
};

}  // namespace weft
