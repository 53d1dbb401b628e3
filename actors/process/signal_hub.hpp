#pragma once
/// SignalHub: receives the signals that end jobs, for threads that sleep in poll().

#include <cstdint>
#include <optional>

#include "actors/process/wake_queue.hpp"

namespace weft {

/// While a subscription lives, SIGINT, SIGTERM and SIGHUP wake its job. An ignored signal stays
/// ignored (nohup). The first subscription of a process installs the handlers. The last one
/// restores the previous handlers, except where the program has replaced the handlers meanwhile.
/// All jobs receive a signal. If a job chains and the program has a handler of its own, that
/// handler is called afterwards.
class SignalSubscription {
 public:
  /// The maximum number of jobs of a process that receive signals.
  static constexpr int kCountMax = 64;

  /// `chain` makes the hub also call the program's own handlers. Throws unavailable if there are
  /// kCountMax subscriptions already.
  explicit SignalSubscription(bool chain);
  ~SignalSubscription();
  SignalSubscription(const SignalSubscription&) = delete;
  SignalSubscription& operator=(const SignalSubscription&) = delete;

  /// Returns a descriptor that becomes readable when a signal has been received.
  int fd() const { return wake_.fd(); }
  /// Returns a signal that was received; 0 if there is none. Each signal is returned once.
  int take();
  /// Returns whether the program had no handler for the signal, so that the default action would
  /// end the program.
  static bool ends_the_program(int signal);
  /// Performs the signal's default action, even if this thread blocks it.
  static void end_the_program_by(int signal);

 private:
  WakeFd wake_;
  int slot_ = -1;
};

}  // namespace weft
