#pragma once
/// JobOutcome: by whom and by what a job ends, where several things may want it to: its loops, the
/// workers' failures, the program's requests, signals, callbacks, the disk. Pure: the time comes
/// from outside.

#include <chrono>
#include <optional>

#include <weft/result.hpp>

namespace weft {

class JobOutcome {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// What a signal to the trainer means.
  enum class SignalVerdict {
    preempt,  ///< the job's grace begins
    ignore,
    cancel,
    leave,  ///< nothing is left to cancel: the process may end by the signal
  };
  /// timeout(1), systemd and Slurm send SIGTERM to a program's process and to its group, or to all
  /// processes: what comes with the first SIGTERM is the same request.
  SignalVerdict on_signal(int signal, Time now);
  /// The job is told to end. The first request counts.
  void on_request(EndedBy by);
  /// A failure on the trainer's own side: of the disk, of a process's start, or a cancellation.
  /// False: it is not the first, and doesn't count.
  bool on_own_failure(Failure failure);
  /// All workers have ended, well or by this failure.
  void on_job_ended(std::optional<Failure> failure);
  void on_callback_threw() { callback_threw_ = true; }

  bool has_job_ended() const { return job_ended_; }
  /// By whom it was told to end; `loops`: by nobody.
  EndedBy requested_by() const { return requested_; }
  /// No process is started, and no report delivered, any more.
  bool has_failed_here() const { return own_failure_ || callback_threw_; }

  /// The workers' failure comes first. A job that was cancelled when it had ended well, with its
  /// reports delivered, has succeeded.
  std::optional<Failure> failure() const;
  EndedBy ended_by() const;

 private:
  EndedBy requested_ = EndedBy::loops;
  bool job_ended_ = false;
  std::optional<Failure> job_failure_;
  std::optional<Failure> own_failure_;
  bool came_late_ = false;  ///< own_failure_, when the job had ended well
  bool callback_threw_ = false;
  std::optional<Time> first_term_;
};

}  // namespace weft
