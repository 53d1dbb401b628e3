#pragma once
/// WorkerProcesses: all worker processes of a job, for a thread that sleeps in poll().

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

/// Used by one thread, whose end the workers don't outlive.
class WorkerProcesses {
 public:
  using Clock = std::chrono::steady_clock;

  /// `lines`: in place of this program's streams; may be empty. `on_stack`: called before a worker
  /// is killed that has been asked for its stack.
  WorkerProcesses(std::function<void(int worker, bool err, std::string_view line)> lines,
                  std::function<void(int worker)> on_stack)
      : lines_(std::move(lines)), on_stack_(std::move(on_stack)) {}

  /// Starts worker `worker`, in the place of the one before. Returns its pid. Throws io.
  pid_t start(int worker, const WorkerCommand& command, const std::vector<std::string>& variables);
  /// `dump_stack`: after it has had 200 ms to say where it is.
  void kill(int worker, bool dump_stack);
  void kill_all() const;
  /// Ends them all and waits for it.
  void clear() { processes_.clear(); }

  /// What to wait for.
  void add_to(std::vector<pollfd>& waits) const;
  /// When serve() is due, whatever comes.
  std::optional<Clock::time_point> deadline() const;
  /// `waits`: what add_to() has added, after poll(). Passes output on, and tells of the ends.
  void serve(const pollfd* waits, const std::function<void(const ProcessEnded&)>& on_end);

  /// None runs, and all that they have printed is passed on.
  bool over() const;
  /// Nobody reads this program's streams: what is left for them is given up.
  void drop_output();

 private:
  struct Stuck {
    pid_t pid;
    Clock::time_point kill_at;
  };
  void kill_stuck();

  const std::function<void(int worker, bool err, std::string_view line)> lines_;
  const std::function<void(int worker)> on_stack_;
  Outlet stdout_{STDOUT_FILENO};
  Outlet stderr_{STDERR_FILENO};
  std::vector<std::unique_ptr<WorkerProcess>> processes_;  // by worker
  std::deque<Stuck> stuck_;  ///< processes that were asked for their stacks, in order
};

}  // namespace weft
