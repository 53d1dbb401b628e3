#pragma once
/// Permits: guards a WorkerState. The worker's actor writes to the state, and the loop's thread
/// waits for its changes.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/commands/loop_commands.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/supervision/worker_state.hpp"

namespace weft {

/// Thread-safe. Every wait can throw three errors: cancelled with the trainer's reason if the job
/// has failed; peer_lost if the generation is over because a worker was lost; and timeout, after
/// `timeout`, with a text that says what the wait was for.
class Permits {
 public:
  Permits(int worker, std::chrono::milliseconds timeout) : timeout_(timeout), state_(worker) {}
  void set_timeout(std::chrono::milliseconds timeout);

  /// Sets the function to call when a loop asks for the first time whether it is to end.
  void on_first_question(std::function<void()> call) { on_first_question_ = std::move(call); }

  // The worker's actor calls the following functions; see WorkerState.
  void start(const Start& start);
  void unwind(std::string reason);
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  std::uint64_t pause();
  void end_at(std::uint64_t step);
  std::uint64_t hold();
  void let_go(std::vector<StoredCommand> commands);
  void wires(WireAddresses all);
  /// Called when another loop has read this command. Returns the error of this loop if it has ended
  /// the command's step without reading the command.
  std::optional<LoopEnded> read_elsewhere(const ReadElsewhere& read);
  void join_parts(std::uint64_t generation, std::uint64_t save);
  void drop_parts(std::uint64_t generation, std::uint64_t save);
  void saved(SaveEnded ended);
  std::optional<LoopEnded> peer_ended(int worker, std::uint64_t runs, std::string last = "");
  void cancel(std::string reason);
  void stop();

  // The loop's thread calls the following functions.
  /// Waits for a generation later than `after`, and returns its start. It has no timeout, because
  /// the trainer itself limits how long workers gather. A generation that is already over is
  /// returned too, because the worker must report to the trainer that it has left that generation.
  Start wait_started(std::uint64_t after = 0);
  /// Waits until all chips of the generation can be reached, and returns their addresses.
  WireAddresses wait_wires(std::uint64_t generation);
  /// Waits until the generation or the job is over, then throws peer_lost or cancelled.
  [[noreturn]] void wait_over();
  /// Remembers a program that this worker shows to the trainer, in order of sequence numbers.
  void shown(ProgramSeen program);
  /// Waits until the program of run number `run` is admitted. Throws uneven_loops if another
  /// worker's loop has ended and takes no part in the run.
  void wait_admitted(std::uint64_t sequence, std::uint64_t run);
  /// Called before the loop begins a step. Throws Preempted if the loop was to end at an earlier
  /// step and no loop asks whether to end. Throws uneven_loops if another loop has read a command
  /// in the step that ends now, and this loop hasn't.
  void begin_step(std::uint64_t step);
  /// Returns whether the loop is to end. If it is, the loop's end without an error counts as
  /// preempted.
  bool reached_preemption();
  bool knows_preemption() const;
  bool is_ending() const;
  /// Locks the commands, calls use(commands) and returns its result.
  template <typename Use>
  auto with_commands(const Use& use) {
    const std::lock_guard lock(mutex_);
    return use(commands_);
  }
  /// Waits at most `time` until the loop has a command to read or is to end in this step. Returns
  /// false if neither happens. Throws Preempted if the loop is to end and no loop asks whether to
  /// end.
  bool wait_command(std::chrono::milliseconds time);
  /// Waits until the save has ended. It has no timeout, because slow disks take time and the
  /// trainer detects workers that are lost or hang.
  SaveEnded wait_saved(std::uint64_t save);
  std::optional<std::uint64_t> lease_to_ask(std::uint64_t step) const;
  std::optional<LoopEnded> loop_ended(LoopEnded ended);
  /// Waits for the trainer's verdict on this generation: for half a minute if the loop has failed,
  /// otherwise without a limit, because the worker may be needed again until all other loops have
  /// ended. If the trainer dies, the worker's process dies with it.
  WorkerState::Verdict wait_verdict();
  /// Called before run number `run`, of program number `program`, begins at `step`. Throws
  /// uneven_loops if another worker's loop has ended and takes no part in the run, and cancelled if
  /// the job has failed. If another worker wants a new program for this run, returns this worker's
  /// program, so that the caller shows it to the trainer.
  std::optional<ProgramSeen> begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                                       const RunSite& site = {});

  // The writer of checkpoints calls the following functions.
  /// Begins the part of this save. The returned flag is set when the part is no longer needed,
  /// because another worker could not write its own part or leave_part() was called.
  const std::atomic<bool>& begin_part(std::uint64_t save);
  /// Makes wait_parts() and wait_end() return at once from now on.
  void leave_part();
  /// Waits until the parts of the save can be joined. Returns false if they never will be, because
  /// the save failed, the generation is over, or leave_part() was called. It has no timeout,
  /// because the trainer waits for the other workers' parts.
  bool wait_parts(std::uint64_t save);
  /// Waits until the trainer has told how the save ended. Returns nothing if it never will.
  std::optional<SaveEnded> wait_end(std::uint64_t save);

  // Any thread may call the following functions.
  bool cancelled() const;
  bool unwinding() const;
  std::uint64_t generation() const;

 private:
  /// Changes the state and wakes the waiting threads.
  template <typename Change>
  auto change(const Change& change);
  template <typename Predicate>
  void wait(const char* what, Predicate predicate);
  void throw_if_over() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds timeout_;
  std::function<void()> on_first_question_;
  std::uint64_t part_ = 0;               // the save to which the current part belongs
  std::atomic<bool> drops_part_{false};  // tells the writing threads, which check it now and then
  bool has_left_part_ = false;
  WorkerState state_;
  LoopCommands commands_;
  WireAddresses wires_;
};

}  // namespace weft
