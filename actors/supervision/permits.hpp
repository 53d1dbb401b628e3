#pragma once
/// Permits: the WorkerState that the worker's actor writes and the loop's thread waits on.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "actors/supervision/worker_state.hpp"

namespace weft {

/// Thread-safe. Every wait throws cancelled with the trainer's reason once the job has failed, or
/// peer_lost once the generation is over because a worker was lost; and timeout, saying what was
/// waited for, after `timeout`.
class Permits {
 public:
  Permits(int worker, std::chrono::milliseconds timeout) : timeout_(timeout), state_(worker) {}
  void set_timeout(std::chrono::milliseconds timeout);

  /// To be called when a loop asks for the first time whether it is to end.
  void on_first_question(std::function<void()> call) { on_first_question_ = std::move(call); }

  // By the worker's actor: see WorkerState.
  void start(const Start& start);
  void unwind(std::string reason);
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  std::uint64_t pause();
  void end_at(std::uint64_t step);
  void join_parts(std::uint64_t generation, std::uint64_t save);
  void drop_parts(std::uint64_t generation, std::uint64_t save);
  void saved(SaveEnded ended);
  std::optional<LoopEnded> peer_ended(int worker, std::uint64_t runs, std::string last = "");
  void cancel(std::string reason);
  void stop();

  // By the loop's thread.
  /// Waits for a generation later than `after`: the trainer has the deadline. Returns it even if it
  /// is over already, as its worker has to leave it by its number.
  Start wait_started(std::uint64_t after = 0);
  /// Waits until the generation or the job is over, and throws peer_lost or cancelled.
  [[noreturn]] void wait_over();
  /// Keeps what this worker shows, in order of sequence.
  void shown(ProgramSeen program);
  /// For run number `run`. Throws uneven_loops if another worker's loop has ended and takes
  /// no part in it.
  void wait_admitted(std::uint64_t sequence, std::uint64_t run);
  /// Before the loop begins a step. Throws Preempted after the step at which it was to end, where
  /// no loop asks whether it is.
  void begin_step(std::uint64_t step);
  /// Whether the loop is to end; it knows then.
  bool reached_preemption();
  bool knows_preemption() const;
  bool is_ending() const;
  /// Waits until the save has ended. No timeout: slow disks take their time, and the trainer looks
  /// for workers that are lost, or hang.
  SaveEnded wait_saved(std::uint64_t save);
  std::optional<std::uint64_t> lease_to_ask(std::uint64_t step) const;
  std::optional<LoopEnded> loop_ended(LoopEnded ended);
  /// Waits for the trainer's last word on this generation: for half a minute after a loop that has
  /// failed. A worker whose loop has ended well may be needed again until all others have ended
  /// theirs, and waits as long; if the trainer dies, the worker's process dies with it.
  WorkerState::Verdict wait_verdict();
  /// Before run number `run`, of program number `program`, begins at `step`. Throws
  /// uneven_loops if another worker's loop has ended and takes no part in it, cancelled if
  /// the job has failed. What it returns is to be shown to the trainer: another worker wants
  /// another program for this run.
  std::optional<ProgramSeen> begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                                       const RunSite& site = {});

  // By who writes checkpoints.
  /// The part of this save begins. What it returns is set as soon as the part isn't wanted any
  /// more, because another worker could not write its own or leave_part() was called.
  const std::atomic<bool>& begin_part(std::uint64_t save);
  /// Ends the waits below, for good.
  void leave_part();
  /// Waits until the parts of the save can be joined. False if they never will: the save failed,
  /// the generation is over, or leave_part() was called. No timeout: the trainer waits for the
  /// other workers' parts.
  bool wait_parts(std::uint64_t save);
  /// Waits until the trainer has said how the save ended; nothing if it never will.
  std::optional<SaveEnded> wait_end(std::uint64_t save);

  // By any thread.
  bool cancelled() const;
  bool unwinding() const;
  std::uint64_t generation() const;

 private:
  /// Changes the state, and wakes who waits.
  template <typename Change>
  auto change(const Change& change);
  template <typename Predicate>
  void wait(const char* what, Predicate predicate);
  void throw_if_over() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds timeout_;
  std::function<void()> on_first_question_;
  std::uint64_t part_ = 0;               // the save of the part that is written
  std::atomic<bool> drops_part_{false};  // a hint for the threads that write it
  bool has_left_part_ = false;
  WorkerState state_;
};

}  // namespace weft
