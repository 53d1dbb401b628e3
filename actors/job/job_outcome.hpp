#pragma once
/// JobOutcome: decides what the trainer's process does when its job ends, and what has ended the
/// job: its loops, a failure of workers, requests of the program, signals, an exception of a
/// callback, or the disk. It has no side effects: its inputs are events and times, its outputs are
/// actions.

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/job/result.hpp>

namespace weft {

class JobOutcome {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Tells the loops to end.
  struct Preempt {
    std::string why;
  };
  struct Cancel {
    Errc code{};
    std::string why;
  };
  /// Kills the processes of all workers that still live.
  struct KillProcesses {};
  /// Drops the workers' remaining output instead of waiting until it is read.
  struct DropOutput {};
  /// Ends the program by this signal, unless the program has its own handler for the signal.
  struct EndProgram {
    int signal = 0;
  };
  /// Warns that the loop in this process hasn't returned and can't be ended.
  struct WarnOfLoop {};
  using Action = std::variant<Preempt, Cancel, KillProcesses, DropOutput, EndProgram, WarnOfLoop>;
  using Actions = std::vector<Action>;

  /// A job `in_background` handles no signals of the program.
  explicit JobOutcome(bool in_background = false) : in_background_(in_background) {}

  /// Called when this process has received a signal; `why` names it. timeout(1), systemd and Slurm
  /// send SIGTERM both to a program's process and to its group, or to all processes. Therefore a
  /// SIGTERM within two seconds of the first one counts as the same request.
  Actions on_signal(int signal, std::string why, Time now);
  /// Called when the program asks for the end of the job by `stop` or `cancel`. Only the first
  /// request counts.
  Actions on_request(EndedBy by, std::string why, Time now);
  /// Called when the trainer's process has failed to write to its disk or to start a process.
  Actions on_own_failure(Failure failure, Time now);
  Actions on_callback_threw();
  /// Called with true when the loop begins to run on a thread of this process, and with false when
  /// it has ended.
  void on_local_loop(bool runs) { local_loop_runs_ = runs; }
  /// Called when all workers have ended, either well or by `failure`. Their processes must end
  /// before deadline().
  void on_job_ended(std::optional<Failure> failure, Time now);
  /// Returns the time at which on_time() must be called; nothing if no call is needed.
  std::optional<Time> deadline() const { return kill_at_; }
  Actions on_time(Time now);

  /// Returns whether the job continues, so that processes may be started and loops must run.
  bool goes_on() const { return !job_ended_ && !has_failed_here(); }
  bool may_call_back() const { return !has_failed_here(); }
  /// Returns whether no loop runs any more. Processes may still run.
  bool is_over() const { return job_ended_ && !local_loop_runs_; }

  /// Returns the failure that ended the job: a failure of the workers, if there is one, or else one
  /// of the trainer's process. Returns nothing if the job had ended well before it was cancelled.
  std::optional<Failure> failure() const;
  EndedBy ended_by() const;

 private:
  bool has_failed_here() const { return own_failure_ || callback_threw_; }
  void note_request(EndedBy by);
  void end_if_stuck(Actions& actions) const;

  bool in_background_;
  EndedBy requested_ = EndedBy::loops;
  bool job_ended_ = false;
  std::optional<Failure> job_failure_;
  std::optional<Failure> own_failure_;
  bool came_late_ = false;  ///< own_failure_ came after the job had ended well
  bool callback_threw_ = false;
  bool local_loop_runs_ = false;
  std::optional<Time> first_term_;
  int last_signal_ = 0;  ///< the last signal that came too late to cancel anything
  std::optional<Time> kill_at_;
};

}  // namespace weft
