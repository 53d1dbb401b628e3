#pragma once
/// The trainer's protocol as a pure state machine: events in, actions out. No clock, no I/O, no
/// actor: a deadline is an event, and whoever owns the state carries the actions out.
///
/// Invariants:
/// 1. The first failure is kept; what it brings down is not reported in its place.
/// 2. A program runs only after every worker has shown the same one under the same sequence number.
/// 3. Leases only grow, and are the same for all workers.
/// 4. After `cancel` or `stop` no other action follows.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/actors/protocol.hpp>
#include <weft/actors/trainer/result.hpp>

namespace weft {

enum class JobPhase : std::uint8_t { joining, running, succeeded, failed };

/// To be sent to every worker that has joined.
struct Action {
  enum class Kind : std::uint8_t { start, asked, admit, grant, loop_ended, cancel, stop };
  Kind kind = Kind::start;
  int worker = -1;           ///< asked, loop_ended: by whom; the others are told
  std::uint64_t number = 0;  ///< admit, grant: the bound; asked: the run; loop_ended: programs run
  std::uint32_t sequence = 0;  ///< asked
  std::string text{};          ///< cancel: why
};
using Actions = std::vector<Action>;

/// What the board says of a worker that is gone.
struct Whereabouts {
  std::uint64_t step = 0;
  std::string collective{};
};

/// The worker for which a wait that has timed out was waiting.
struct Missing {
  int worker = -1;
  std::string how{};  ///< "is stopped", or ""
};

class JobState {
 public:
  explicit JobState(int num_workers, std::uint64_t lease_steps = kLeaseSteps);

  /// A worker's process has been started.
  void started(int worker, int pid);
  /// Why the join is refused; nothing for a good one, which is then to be told by joined().
  std::optional<std::string> refuse_join(int worker) const;
  Actions joined(int worker, int pid);
  Actions program(const ProgramSeen& program);
  Actions lease_wanted(std::uint64_t step);
  /// `missing`: for whom a worker whose error is a timeout has waited, if that is known.
  Actions loop_ended(const LoopEnded& ended, const std::optional<Missing>& missing = {});
  Actions process_ended(const ProcessEnded& ended, const Whereabouts& where);
  /// The link to a worker broke, and its process did not end for it.
  Actions link_lost(int worker, const Whereabouts& where);
  /// The time for all joins is over.
  Actions join_deadline(double timeout_s);
  /// From outside: a signal to the trainer, for instance.
  Actions cancel(Errc code, std::string message);

  JobPhase phase() const { return phase_; }
  bool over() const { return phase_ == JobPhase::succeeded || phase_ == JobPhase::failed; }
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  struct Worker {
    int pid = 0;
    bool joined = false;
    std::optional<LoopEnded> ended;
    bool gone = false;
  };
  Worker& at(int worker);
  const Worker& at(int worker) const;
  /// What comes over the wire names a worker that has joined, or is passed over.
  bool takes_part(int worker) const;
  std::string name(int worker) const;
  Actions fail_with(Failure failure);
  Actions compare(const ProgramSeen& first, const ProgramSeen& second);

  std::vector<Worker> workers_;
  std::uint64_t lease_steps_;
  std::uint64_t granted_ = 0;
  JobPhase phase_ = JobPhase::joining;
  std::optional<Failure> failure_;
  /// Programs shown by some workers and not yet by all, by sequence number.
  std::map<std::uint32_t, std::vector<ProgramSeen>> pending_;
};

}  // namespace weft
