#pragma once
/// Job: a job that runs in the background of its program.

#include <chrono>
#include <cstdint>
#include <memory>

#include <weft/config.hpp>
#include <weft/result.hpp>

namespace weft {

struct JobRequest;

/// What Trainer::start() returns. Any member may be called on any thread, but for moving,
/// assigning and destroying, which need the object alone. An empty Job has ended; result() of one
/// throws invalid_argument.
class Job {
 public:
  enum class Phase : std::uint8_t {
    starting,  ///< its workers are on their way
    running,   ///< their loops run
    stopping,  ///< it has been told to end
    ended,
  };

  Job() noexcept;
  Job(Job&&) noexcept;
  /// First ends the job that this object held, as the destructor does.
  Job& operator=(Job&&) noexcept;
  /// Cancels the job and waits for its end. A loop in this process (num_workers = 0) ends when it
  /// comes to its next sync() or returns: one that does neither is waited for, with a warning.
  ~Job();

  /// Asks the loops to save what they have and end: ctx.reached_preemption() is true in all of them
  /// from the same step on. A loop that doesn't ask is left at its next step. After run.grace_s as
  /// cancel(). Returns at once.
  void stop();
  /// Ends it now: loops are left at their next sync(), processes killed a second later. Returns at
  /// once.
  void cancel();

  /// Until it has ended. Throws invalid_argument in one of the job's own callbacks.
  void wait() const;
  /// False where it hasn't ended in that time.
  bool wait_for(std::chrono::nanoseconds time) const;
  /// Waits for the end. Rethrows what a callback threw.
  Result result() const;

  Phase phase() const;
  /// The last report of worker 0; null before the first.
  Metrics latest() const;
  JobInfo info() const;
  /// A file descriptor that is readable once the job has ended, for poll(), epoll or an event loop
  /// (QSocketNotifier); the job's own: don't read or close it. -1 of an empty Job.
  int fd() const;

 private:
  friend class Trainer;
  struct State;
  explicit Job(std::unique_ptr<State> state) noexcept;
  static Job start(JobRequest request);

  std::unique_ptr<State> state_;
};

}  // namespace weft
