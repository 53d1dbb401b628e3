#pragma once
/// Permits: what the trainer has allowed a worker so far. The worker's actor writes it, the loop's
/// thread waits on it.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Thread-safe. Every wait throws cancelled with the trainer's reason once the job has failed, or
/// peer_lost once the generation is over because a worker was lost; and timeout, saying what was
/// waited for, after `timeout`.
class Permits {
 public:
  explicit Permits(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  void set_timeout(std::chrono::milliseconds timeout);

  /// To be called when a loop asks for the first time whether it is to end.
  void on_first_question(std::function<void()> call) { on_first_question_ = std::move(call); }

  // By the worker's actor.
  /// A generation begins: nothing that was allowed before it counts.
  void start(const Start& start);
  /// The generation is over.
  void unwind(std::string reason);
  /// Another worker wants its new program number `sequence` for run number `run`. What to show the
  /// trainer if this worker has made that run with a program it knew; if it is to come, begin_run()
  /// will say it.
  std::optional<ProgramSeen> asked(std::uint32_t sequence, std::uint64_t run);
  void admit(std::uint64_t programs);
  void grant(std::uint64_t steps);
  /// No step begins until end_at() says from which on the loop is told to end. The first one that
  /// doesn't.
  std::uint64_t pause();
  void end_at(std::uint64_t step);
  /// What to tell the trainer, but for this worker's number, if it has already begun a run that the
  /// other takes no part in.
  std::optional<LoopEnded> loop_ended(int worker, std::uint64_t runs, std::string last = "");
  void cancel(std::string reason);
  void stop();

  // By the loop's thread.
  /// Waits for a generation later than `after`: the trainer has the deadline. Returns it even if it
  /// is over already, as its worker has to leave it by its number.
  Start wait_started(std::uint64_t after = 0);
  /// Keeps what this worker shows, in order of sequence.
  void shown(ProgramSeen program);
  /// For run number `run`. Throws program_divergence if another worker's loop has ended and takes
  /// no part in it.
  void wait_admitted(std::uint64_t sequence, std::uint64_t run);
  /// Before the loop begins a step. Throws Preempted after the step at which it was to end, where
  /// no loop asks whether it is.
  void begin_step(std::uint64_t step);
  /// Whether the loop is to end; it knows then.
  bool reached_preemption();
  bool knows_preemption() const;
  enum class Verdict { stopped, cancelled, unwound };
  /// Waits for the trainer's last word on this generation; `stopped` after `patience`, too.
  Verdict wait_verdict(std::chrono::milliseconds patience);
  std::uint64_t granted() const;
  /// Before run number `run`, of program number `program`, begins at `step`. Throws
  /// program_divergence if another worker's loop has ended and takes no part in it, cancelled if
  /// the job has failed. What it returns is to be shown to the trainer: another worker wants
  /// another program for this run.
  std::optional<ProgramSeen> begin_run(std::uint64_t run, std::uint32_t program, std::uint64_t step,
                                       const RunSite& site = {});
  bool cancelled() const;
  bool unwinding() const;
  std::uint64_t generation() const;

 private:
  template <typename Predicate>
  void wait(const char* what, Predicate predicate);
  void throw_if_cancelled() const;
  std::string overtaken(std::uint64_t run, const std::string& site) const;
  std::optional<ProgramSeen> contradiction(std::uint32_t program) const;

  /// What belongs to one generation.
  struct Generation {
    std::optional<Start> started;
    std::uint64_t admitted = 0;
    std::uint64_t granted = 0;
    std::uint64_t step = 0;  // the last begun
    bool paused = false;
    std::optional<std::uint64_t> end_at;
    bool has_asked = false;
    bool knows_preemption = false;
    std::uint64_t begun_runs = 0;
    std::uint64_t begun_step = 0;
    RunSite begun_site;
    std::deque<std::uint32_t> recent;  // programs of the last runs, the newest last
    std::vector<ProgramSeen> shown;
    std::uint32_t asked_sequence = 0;
    std::uint64_t asked_run = 0;  // 0: nothing asked
    int ended_worker = -1;
    std::string ended_last;
    std::uint64_t ended_runs = std::numeric_limits<std::uint64_t>::max();
  };

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds timeout_;
  bool stopped_ = false;
  bool cancelled_ = false;
  bool unwinding_ = false;
  std::string reason_;
  std::function<void()> on_first_question_;
  Generation now_;
};

}  // namespace weft
