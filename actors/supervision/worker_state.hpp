#pragma once
/// The worker's half of the protocol as a pure state machine; JobState is the trainer's half. It
/// has no clock, no I/O and no thread: Permits holds it. Invariants:
/// 1. Permissions of one generation don't count in the next.
/// 2. The loop begins no step beyond its lease. Once paused, it begins no further step until it is
///    told at which step loops end.
/// 3. A new program runs only after the trainer has admitted it. It never runs if another worker's
///    loop has ended without it.
/// 4. The first reason to cancel the job is kept. After `stop`, no reason to cancel or leave
///    counts.
/// 5. A loop that must leave its generation unwinds and doesn't report its end. If the loop ended
///    in another way before it noticed, that doesn't count as its failure.

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
  /// `lease_asked_ahead` is how many steps before it needs a lease the worker asks for one.
  explicit WorkerState(int worker, std::uint64_t lease_asked_ahead = kLeaseAskedAhead)
      : worker_(worker), lease_asked_ahead_(lease_asked_ahead) {}

  // The trainer's messages call the following functions.
  void start(const Start& start);   ///< a generation begins
  void unwind(std::string reason);  ///< the generation is over, because a worker was lost
  void cancel(std::string reason);
  void stop();
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  /// Returns the first step that the loop doesn't begin until end_at() is called.
  std::uint64_t pause();
  /// Called when the loop is to be told to end from this step on.
  void end_at(std::uint64_t step);
  /// Parts of this save can be joined or aren't needed. Ignores earlier generations.
  void join_parts(std::uint64_t generation, std::uint64_t save);
  void drop_parts(std::uint64_t generation, std::uint64_t save);
  void saved(SaveEnded ended);
  /// Called when another worker wants its new program number `sequence` for run number `run`. If
  /// this worker has made that run with a known program, returns it, to show to the trainer.
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  /// Called when another worker's loop has ended after `runs` runs. If this loop has begun a later
  /// run, returns its end, to report to the trainer.
  std::optional<LoopEnded> peer_ended(int worker, std::uint64_t runs, std::string last);

  // The following functions describe the job and the current generation.
  /// `unwinding`: the worker must leave the generation and report it; cancellation has priority.
  enum class Standing : std::uint8_t { runs, stopped, unwinding, cancelled };
  Standing standing() const;
  bool cancelled() const { return cancelled_; }
  /// Returns whether the loop must be left at once; reason() says why.
  bool is_over() const { return cancelled_ || unwinding_; }
  const std::string& reason() const { return reason_; }
  /// Returns the last generation's start; null if that generation isn't later than `after`.
  const Start* started(std::uint64_t after) const;
  std::uint64_t generation() const { return now_.started ? now_.started->generation : 0; }

  // The loop calls the following functions.
  enum class StepBegin : std::uint8_t { waits, begun, leaves };
  /// Returns `leaves` if the loop was to end, doesn't ask whether to end, and therefore ends here.
  StepBegin begin_step(std::uint64_t step);
  /// Returns the step for which the loop needs a lease after `step` steps, if any.
  std::optional<std::uint64_t> lease_to_ask(std::uint64_t step) const;
  /// Returns whether the loop is to end. If true, its end without an error counts as preempted.
  bool reached_preemption();
  /// Returns whether the loop asks for the first time in this generation.
  bool asks() { return !std::exchange(now_.has_asked, true); }
  bool knows_preemption() const { return now_.knows_preemption; }
  /// If the loop is to end, lets it end at this step. Sets `leaves` if no loop asks whether to end.
  bool end_here(bool& leaves);
  /// Returns the end of this loop by an error that it has made in comparison with another loop.
  LoopEnded uneven(std::string message) const;
  /// Returns whether the loop is to end at this step, or was to end at an earlier one.
  bool is_ending() const { return now_.end_at && now_.step >= *now_.end_at; }
  bool may_join_parts(std::uint64_t save) const { return now_.joinable_save >= save; }
  bool drops_parts(std::uint64_t save) const { return now_.dropped_save >= save; }
  /// Returns how the save ended; null if it hasn't. Later saves may have failed in the meantime.
  const SaveEnded* save_ended(std::uint64_t save) const;
  /// Keeps a program that the worker shows the trainer, in order of sequence.
  void shown(ProgramSeen program) { now_.shown.push_back(std::move(program)); }
  enum class Admission : std::uint8_t { waits, admitted, overtaken };
  /// Returns whether the worker may use its new program number `sequence` for run number `run`.
  Admission admission(std::uint64_t sequence, std::uint64_t run) const;
  /// Returns the error text for a run in which another worker's ended loop takes no part.
  std::string overtaken(std::uint64_t run, const std::string& site) const;
  std::string last_shown_site() const { return now_.shown.empty() ? "" : now_.shown.back().site; }
  struct RunBegin {
    bool is_overtaken = false;
    std::optional<ProgramSeen> contradicts;  ///< to show, as another worker wants another program
  };
  /// Called when run number `run`, of program number `program`, begins at `step`.
  RunBegin begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                     const RunSite& site);

  /// Called when a loop has ended or can't be run (generation 0). Returns the message for the
  /// trainer, with all fields set; nothing if the loop is unwinding.
  std::optional<LoopEnded> loop_ended(LoopEnded ended);
  /// The worker's action after its loop's end. `waits`: it waits for the trainer's verdict.
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
    std::uint64_t asked_run = 0;                        ///< 0: no run was asked for
    std::uint64_t joinable_save = 0, dropped_save = 0;  ///< numbers of the last such saves
    std::deque<SaveEnded> saved;                        ///< the last saves that have ended
    int ended_worker = -1;
    std::string ended_last;
    std::uint64_t ended_runs = std::numeric_limits<std::uint64_t>::max();
  };

  int worker_;
  std::uint64_t lease_asked_ahead_;
  bool has_failed_ = false;  ///< whether the last loop that ended has failed
  bool stopped_ = false;
  bool cancelled_ = false;
  bool unwinding_ = false;
  std::string reason_;
  Generation now_;
};

}  // namespace weft
