#pragma once
/// The signals that end a job, for a thread that sleeps in poll().

namespace weft {

/// While it lives, catches SIGINT, SIGTERM and SIGHUP (one that is ignored stays so: nohup), lets a
/// write to a closed pipe be an error, and lets children be waited for. Then puts back what was
/// there before. One per process at a time.
class SignalTrap {
 public:
  SignalTrap();
  ~SignalTrap();
  SignalTrap(const SignalTrap&) = delete;
  SignalTrap& operator=(const SignalTrap&) = delete;

  int fd() const;
  /// The last signal caught since the call before; 0 for none.
  int take();
};

}  // namespace weft
