#pragma once
/// WorkerProcesses: starts, serves and kills all worker processes of a job, for a thread that
/// sleeps in poll().

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "actors/launch/worker_process.hpp"

namespace weft {

/// Only one thread may use this object. The workers are killed when that thread ends.
class WorkerProcesses {
 public:
  using Clock = std::chrono::steady_clock;

  /// If `lines` is set, it receives the workers' output instead of this program's streams.
  /// `on_stack` is called before a worker that was asked for its stack is killed. `who` is the word
  /// before the number in a line's prefix.
  WorkerProcesses(std::function<void(int worker, bool err, std::string_view line)> lines,
                  std::function<void(int worker)> on_stack, std::string who = "worker")
      : lines_(std::move(lines)), on_stack_(std::move(on_stack)), who_(std::move(who)) {}

  /// Starts worker `worker` in place of an earlier process. Returns its pid. Throws io.
  pid_t start(int worker, const WorkerCommand& command, const std::vector<std::string>& variables);
  /// Kills the worker. With `dump_stack`, the worker first has 200 ms to write its stack.
  void kill(int worker, bool dump_stack);
  void kill_all() const;
  /// Kills all processes and waits for their end.
  void clear() { processes_.clear(); }

  /// Appends the descriptors for which poll() must wait.
  void add_to(std::vector<pollfd>& waits) const;
  /// Returns the time before which serve() must be called; nothing if there is no such time.
  std::optional<Clock::time_point> deadline() const;
  /// Passes on output and reports processes that have ended. `waits` points to the descriptors of
  /// add_to(), with poll()'s results.
  void serve(const pollfd* waits, const std::function<void(const ProcessEnded&)>& on_end);

  /// Returns whether no process runs and all output was passed on.
  bool over() const;
  /// Drops the remaining output, for a program whose own streams have no reader.
  void drop_output();

 private:
  struct Stuck {
    pid_t pid;
    Clock::time_point kill_at;
  };
  void kill_stuck();

  const std::function<void(int worker, bool err, std::string_view line)> lines_;
  const std::function<void(int worker)> on_stack_;
  const std::string who_;
  Outlet stdout_{STDOUT_FILENO};
  Outlet stderr_{STDERR_FILENO};
  std::vector<std::unique_ptr<WorkerProcess>> processes_;  // by worker; null: never started
  std::deque<Stuck> stuck_;  ///< processes that must write their stacks, the earliest kill first
};

}  // namespace weft
