#pragma once
/// The worker's half of the protocol as a pure state machine; JobState is the trainer's half. It
/// has no clock, no I/O and no thread: Permits holds it. Invariants:
/// 1. Permissions of one generation don't hold in the next.
/// 2. The loop begins no step beyond its lease. Once paused, it begins no step until it is told at
///    which step loops end.
/// 3. A new program runs only after the trainer has admitted it. It never runs if another worker's
///    loop has ended without running it.
/// 4. The first reason to cancel the job is kept. After `stop`, later reasons are ignored.
/// 5. A loop that must leave its generation unwinds and doesn't report its end. If it fails before
///    it notices that it must leave, that isn't reported as its failure.

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/save_messages.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

class WorkerState {
 public:
  /// The worker asks for a lease `lease_asked_ahead` steps before it needs the lease.
  explicit WorkerState(int worker, std::uint64_t lease_asked_ahead = kLeaseAskedAhead)
      : worker_(worker), lease_asked_ahead_(lease_asked_ahead) {}

  // The trainer's messages call the following functions.
  void start(const Start& start);   ///< called when a generation begins
  void unwind(std::string reason);  ///< called when the generation ends early after a loss
  void cancel(std::string reason);
  void stop();
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  /// Pauses the loop. Returns the first step that the loop doesn't begin until end_at() is called.
  std::uint64_t pause();
  /// Called when the loops are told to end at this step.
  void end_at(std::uint64_t step);
  /// Called when the parts of this save can be joined, or aren't needed. Ignores other generations.
  void join_parts(std::uint64_t generation, std::uint64_t save);
  void drop_parts(std::uint64_t generation, std::uint64_t save);
  void saved(SaveEnded ended);
  /// Called when another worker wants its new program number `sequence` for run number `run`. If
  /// this worker has made that run with a known program, returns that program, for the trainer.
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  /// Called when another worker's loop has ended after `runs` runs. If this loop has begun a later
  /// run, returns the end of this loop with an error, for the trainer.
  std::optional<LoopEnded> peer_ended(int worker, std::uint64_t runs, std::string last);

  // The following functions describe the job and the current generation.
  /// `unwinding`: the worker must leave the generation and report that. `cancelled` has priority.
  enum class Standing : std::uint8_t { runs, stopped, unwinding, cancelled };
  Standing standing() const;
  bool cancelled() const { return cancelled_; }
  /// Returns whether the loop must be left at once; reason() says why.
  bool is_over() const { return cancelled_ || unwinding_; }
  const std::string& reason() const { return reason_; }
  /// Returns the start of the current generation if that is later than `after`, else null.
  const Start* started(std::uint64_t after) const;
  std::uint64_t generation() const { return now_.started ? now_.started->generation : 0; }

  // The loop calls the following functions.
  enum class StepBegin : std::uint8_t { waits, begun, leaves };
  /// Returns `leaves` if the loop was to end at an earlier step but no loop asks whether to end.
  StepBegin begin_step(std::uint64_t step);
  /// Returns the step for which the loop must ask for a lease now, if any. `step` steps have ended.
  std::optional<std::uint64_t> lease_to_ask(std::uint64_t step) const;
  /// Returns whether the loop is to end. If it is, its end without an error counts as preempted.
  bool reached_preemption();
  /// Returns whether this is the loop's first question in this generation whether to end.
  bool asks() { return !std::exchange(now_.has_asked, true); }
  bool knows_preemption() const { return now_.knows_preemption; }
  /// If the loop is to end, lets it end at this step. Sets `leaves` if no loop asks whether to end.
  bool end_here(bool& leaves);
  /// Returns the end of this loop with the error uneven_loops.
  LoopEnded uneven(std::string message) const;
  /// Returns whether the loop is to end at this step, or was to end at an earlier one.
  bool is_ending() const { return now_.end_at && now_.step >= *now_.end_at; }
  bool may_join_parts(std::uint64_t save) const { return now_.joinable_save >= save; }
  bool drops_parts(std::uint64_t save) const { return now_.dropped_save >= save; }
  /// Returns how the save ended; null if that isn't known.
  const SaveEnded* save_ended(std::uint64_t save) const;
  /// Remembers a program that the worker shows to the trainer, in order of sequence numbers.
  void shown(ProgramSeen program) { now_.shown.push_back(std::move(program)); }
  enum class Admission : std::uint8_t { waits, admitted, overtaken };
  /// Returns whether the worker may use its new program number `sequence` for run number `run`.
  Admission admission(std::uint64_t sequence, std::uint64_t run) const;
  /// Returns the error text for a run that another worker's loop, which has ended, doesn't make.
  std::string overtaken(std::uint64_t run, const std::string& site) const;
  std::string last_shown_site() const { return now_.shown.empty() ? "" : now_.shown.back().site; }
  struct RunBegin {
    bool is_overtaken = false;
    std::optional<ProgramSeen> contradicts;  ///< this worker's program if another wants a new one
  };
  /// Called when run number `run`, of program number `program`, begins at `step`.
  RunBegin begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                     const RunSite& site);

  /// Called when a loop has ended, or can't be run (generation 0). Returns the message for the
  /// trainer, with all fields set; nothing if the loop is unwinding.
  std::optional<LoopEnded> loop_ended(LoopEnded ended);
  /// The worker's behavior after its loop's end. `waits`: it waits for the trainer's verdict.
  enum class Verdict : std::uint8_t { waits, unwinds, leaves_well, leaves_badly };
  Verdict verdict() const;
  /// Returns the verdict that applies if the trainer doesn't send one.
  Verdict verdict_without_trainer() const;

 private:
  std::optional<ProgramSeen> contradiction(std::uint32_t program) const;

  struct Generation {
    std::optional<Start> started;
    std::uint64_t admitted = 0;
    std::uint64_t granted = 0;
    std::uint64_t step = 0;  ///< the last step begun
    bool paused = false;
    std::optional<std::uint64_t> end_at;
    bool has_asked = false;
    bool knows_preemption = false;
    std::uint64_t begun_runs = 0;
    std::uint64_t begun_step = 0;
    RunSite begun_site;
    std::deque<std::uint32_t> recent;  ///< programs of the last runs, newest last
    std::vector<ProgramSeen> shown;
    std::uint32_t asked_sequence = 0;
    std::uint64_t asked_run = 0;                        ///< 0: no worker has asked
    std::uint64_t joinable_save = 0, dropped_save = 0;  ///< the last save to join; the last to drop
    std::deque<SaveEnded> saved;                        ///< the last saves that have ended
    int ended_worker = -1;
    std::string ended_last;
    std::uint64_t ended_runs = std::numeric_limits<std::uint64_t>::max();
  };

  int worker_;
  std::uint64_t lease_asked_ahead_;
  bool has_failed_ = false;  ///< whether the last loop has failed
  bool stopped_ = false;
  bool cancelled_ = false;
  bool unwinding_ = false;
  std::string reason_;
  Generation now_;
};

}  // namespace weft
