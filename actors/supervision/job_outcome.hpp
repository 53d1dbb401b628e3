#pragma once
/// JobOutcome: what the trainer's process does about its job's end, and what ended the job: its
/// loops, a failure of workers, the program's requests, signals, a callback's exception, the disk.
/// Pure: events and times go in, actions come out.

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/result.hpp>

namespace weft {

class JobOutcome {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The loops are told to end.
  struct Preempt {
    std::string why;
  };
  struct Cancel {
    Errc code{};
    std::string why;
  };
  /// Of all workers whose processes still live.
  struct KillProcesses {};
  /// What workers have written, and nobody has read yet, is waited for no longer.
  struct DropOutput {};
  /// The program ends by this signal, unless it has a handler of its own.
  struct EndProgram {
    int signal = 0;
  };
  /// The loop in this process hasn't returned, and can't be ended.
  struct WarnOfLoop {};
  using Action = std::variant<Preempt, Cancel, KillProcesses, DropOutput, EndProgram, WarnOfLoop>;
  using Actions = std::vector<Action>;

  /// `in_background`: the job handles no signals of the program.
  explicit JobOutcome(bool in_background = false) : in_background_(in_background) {}

  /// timeout(1), systemd and Slurm send SIGTERM to a program's process and to its group, or to all
  /// processes: a SIGTERM within two seconds of the first one is the same request. `why`: names it.
  Actions on_signal(int signal, std::string why, Time now);
  /// The program asks for the end of the job: `stop` or `cancel`. The first request counts.
  Actions on_request(EndedBy by, std::string why, Time now);
  /// A failure in the trainer's process: of the disk, or of a process's start.
  Actions on_own_failure(Failure failure, Time now);
  Actions on_callback_threw();
  /// The loop runs on a thread of this process.
  void on_local_loop(bool runs) { local_loop_runs_ = runs; }
  /// All workers have ended, well or by this failure. Their processes have until deadline() to end.
  void on_job_ended(std::optional<Failure> failure, Time now);
  /// When on_time() is to be called; nothing: never.
  std::optional<Time> deadline() const { return kill_at_; }
  Actions on_time(Time now);

  /// No end of the job is known: processes may be started, and loops are to run.
  bool goes_on() const { return !job_ended_ && !has_failed_here(); }
  bool may_call_back() const { return !has_failed_here(); }
  /// Whether no loop runs any more; processes may.
  bool is_over() const { return job_ended_ && !local_loop_runs_; }

  /// A failure of the workers counts more than one of the trainer's process. A job that was
  /// cancelled when it had already ended well has succeeded.
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
  bool came_late_ = false;  ///< own_failure_ came when the job had ended well
  bool callback_threw_ = false;
  bool local_loop_runs_ = false;
  std::optional<Time> first_term_;
  int last_signal_ = 0;  ///< a signal after which nothing was left to cancel
  std::optional<Time> kill_at_;
};

}  // namespace weft
