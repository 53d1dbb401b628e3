#pragma once
/// The worker's half of the protocol as a pure state machine, as JobState is the trainer's: the
/// trainer's messages go in, what the loop may do comes out. No clock, no I/O, no thread: Permits
/// holds it for the worker's actor and the loop's thread. Invariants:
/// 1. Nothing that was allowed in one generation counts in the next.
/// 2. The loop begins no step beyond its lease. Once paused, it begins none beyond the last that it
///    has begun, until it is told at which step loops end.
/// 3. A new program runs when the trainer has admitted it, or never, where another worker's loop
///    has ended without it.
/// 4. The first reason to cancel the job or leave the generation is kept; after `stop` none comes.
/// 5. A loop that has to leave its generation tells the trainer of no end: it unwinds. That it
///    didn't notice, or ended with another error for it, is no failure of its own.

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
  /// `lease_asked_ahead`: it asks for a lease so many steps before it needs it.
  explicit WorkerState(int worker, std::uint64_t lease_asked_ahead = kLeaseAskedAhead)
      : worker_(worker), lease_asked_ahead_(lease_asked_ahead) {}

  // From the trainer.
  void start(const Start& start);  ///< a generation begins
  /// The generation is over: a worker was lost.
  void unwind(std::string reason);
  void cancel(std::string reason);
  void stop();
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  /// The first step that the loop doesn't begin until end_at() comes.
  std::uint64_t pause();
  /// From this step on the loop is told to end.
  void end_at(std::uint64_t step);
  /// The parts of this save can be joined, or are not wanted; of an earlier generation neither.
  void join_parts(std::uint64_t generation, std::uint64_t save);
  void drop_parts(std::uint64_t generation, std::uint64_t save);
  void saved(SaveEnded ended);
  /// Another worker wants its new program number `sequence` for run number `run`. What to show the
  /// trainer if this worker has made that run with a program it knew; if it is to come, begin_run()
  /// will say it.
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  /// Another worker's loop has ended after so many runs. What to tell the trainer if this worker's
  /// loop has begun a run that the other takes no part in.
  std::optional<LoopEnded> peer_ended(int worker, std::uint64_t runs, std::string last);

  // Of the job, and of the generation that runs.
  /// `unwinding`: the worker is to leave the generation, and to say so; but not once the job is
  /// cancelled.
  enum class Standing : std::uint8_t { runs, stopped, unwinding, cancelled };
  Standing standing() const;
  bool cancelled() const { return cancelled_; }
  /// The loop is to be left at once, for this reason.
  bool is_over() const { return cancelled_ || unwinding_; }
  const std::string& reason() const { return reason_; }
  /// What the last generation that has begun starts with; null where none is later than `after`.
  const Start* started(std::uint64_t after) const;
  std::uint64_t generation() const { return now_.started ? now_.started->generation : 0; }

  // From the loop.
  enum class StepBegin : std::uint8_t { waits, begun, leaves };
  /// `leaves`: the loop was to end, doesn't ask whether it is to, and ends here.
  StepBegin begin_step(std::uint64_t step);
  /// The loop has ended `step` steps. Returns the step that it wants a lease for; nothing if the
  /// lease that it has is enough for now.
  std::optional<std::uint64_t> lease_to_ask(std::uint64_t step) const;
  /// Of a loop that asks whether it is to end. It knows the answer then.
  bool reached_preemption();
  /// Whether the loop asks for the first time in this generation.
  bool asks() { return !std::exchange(now_.has_asked, true); }
  bool knows_preemption() const { return now_.knows_preemption; }
  /// Whether the loop is to end at this step or was to at an earlier one.
  bool is_ending() const { return now_.end_at && now_.step >= *now_.end_at; }
  bool may_join_parts(std::uint64_t save) const { return now_.joinable_save >= save; }
  bool drops_parts(std::uint64_t save) const { return now_.dropped_save >= save; }
  /// How the save ended; null before. Later saves may have failed by then.
  const SaveEnded* save_ended(std::uint64_t save) const;
  /// What the worker shows the trainer, in order of sequence.
  void shown(ProgramSeen program) { now_.shown.push_back(std::move(program)); }
  enum class Admission : std::uint8_t { waits, admitted, overtaken };
  /// Of the worker's new program `sequence`, for run number `run`.
  Admission admission(std::uint64_t sequence, std::uint64_t run) const;
  /// What the error says of a run that another worker's ended loop takes no part in.
  std::string overtaken(std::uint64_t run, const std::string& site) const;
  std::string last_shown_site() const { return now_.shown.empty() ? "" : now_.shown.back().site; }
  struct RunBegin {
    bool is_overtaken = false;
    std::optional<ProgramSeen> contradicts;  ///< to be shown: another worker wants another program
  };
  /// Run number `run`, of program number `program`, begins at `step`.
  RunBegin begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                     const RunSite& site);

  /// The loop of a generation has ended, or can't be run (generation 0). Returns what to tell the
  /// trainer: `ended` with the fields that the loop doesn't know; nothing if it unwinds.
  std::optional<LoopEnded> loop_ended(LoopEnded ended);
  /// What the worker does after the end of its loop. `waits`: for the trainer's last word.
  enum class Verdict : std::uint8_t { waits, unwinds, leaves_well, leaves_badly };
  Verdict verdict() const;
  /// What the verdict is if the trainer's last word doesn't come.
  Verdict verdict_without_trainer() const;

 private:
  std::optional<ProgramSeen> contradiction(std::uint32_t program) const;

  struct Generation {
    std::optional<Start> started;
    std::uint64_t admitted = 0;
    std::uint64_t granted = 0;
    std::uint64_t step = 0;  ///< the last begun
    bool paused = false;
    std::optional<std::uint64_t> end_at;
    bool has_asked = false;
    bool knows_preemption = false;
    std::uint64_t begun_runs = 0;
    std::uint64_t begun_step = 0;
    RunSite begun_site;
    std::deque<std::uint32_t> recent;  ///< programs of the last runs, the newest last
    std::vector<ProgramSeen> shown;
    std::uint32_t asked_sequence = 0;
    std::uint64_t asked_run = 0;                        ///< 0: nothing asked
    std::uint64_t joinable_save = 0, dropped_save = 0;  ///< the last; numbers ascend
    std::deque<SaveEnded> saved;                        ///< the last ones that have ended
    int ended_worker = -1;
    std::string ended_last;
    std::uint64_t ended_runs = std::numeric_limits<std::uint64_t>::max();
  };

  int worker_;
  std::uint64_t lease_asked_ahead_;
  bool has_failed_ = false;  ///< the last loop that has ended
  bool stopped_ = false;
  bool cancelled_ = false;
  bool unwinding_ = false;
  std::string reason_;
  Generation now_;
};

}  // namespace weft
