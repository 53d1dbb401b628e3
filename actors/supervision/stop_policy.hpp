#pragma once
/// StopPolicy: what a signal to the trainer means for its job. Pure: the time comes from outside.

#include <chrono>
#include <optional>

namespace weft {

/// timeout(1), systemd and Slurm send SIGTERM to a program's process and to its group, or to all
/// processes: what comes with the first SIGTERM is the same request.
class StopPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Verdict {
    preempt,  ///< the job's grace begins
    ignore,
    cancel,
    leave,  ///< nothing is left to cancel: the process may end by the signal
  };

  /// `over`: the job is cancelled, or has ended as it was to.
  Verdict on_signal(int signal, Time now, bool over);
  bool preempted() const { return first_term_.has_value(); }

 private:
  std::optional<Time> first_term_;
};

}  // namespace weft
