#pragma once
/// The trainer's protocol as a pure state machine: events in, actions out. No clock, no I/O, no
/// actor: a deadline is an event, and whoever owns the state carries the actions out.
///
/// A job runs in generations. In each the workers gather, run their loops from the same step on,
/// and end them together; or one is lost, the others unwind their loops, the lost one is started
/// again, and all gather in the next generation. Invariants:
/// 1. The first failure is kept; what it brings down is not reported in its place.
/// 2. A program runs only after every worker has shown the same one under the same sequence number.
/// 3. Within a generation leases only grow, and are the same for all workers.
/// 4. A generation starts when every worker is there and none runs anything: at the step that all
///    chips have committed (commits.hpp), or where no state is kept at that of a checkpoint.
/// 5. What a worker says of another generation than the one that runs is passed over.
/// 6. After `cancel` or `stop` no other action follows.
/// 7. Loops of a preempted job are told to end at one step: the first that none has begun. No
///    backoff is waited for, and nobody started for loops that don't ask whether to end.
/// 8. Workers that are lost while all gather are one incident (recovery.hpp).

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weft/result.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/protocol/sighting.hpp"
#include "actors/supervision/action.hpp"
#include "actors/supervision/checkpoint_tally.hpp"
#include "actors/supervision/recovery.hpp"
#include "actors/supervision/report_filter.hpp"

namespace weft {

enum class JobPhase : std::uint8_t { gathering, running, succeeded, failed };

class JobState {
 public:
  explicit JobState(const JobTerms& terms);
  Actions begin() const { return {action::GatherDeadline{generation_}}; }
  void started(int worker, int pid);
  /// Why this worker's request to join is refused; nothing if it isn't, and joined() is to follow.
  std::optional<std::string> refuse_join(int worker, int pid) const;
  /// `committed`, here and below: the step that all chips have committed (common_step()).
  Actions joined(int worker, int pid, std::uint64_t committed);
  /// The worker has left the loop of a generation before this one.
  Actions unwound(int worker, std::uint64_t generation, std::uint64_t committed);
  Actions program(const ProgramSeen& program);
  Actions lease_wanted(std::uint64_t step);
  /// `awaited`: the worker for which this one waits, if that is known. It counts after a timeout.
  Actions loop_ended(const LoopEnded& ended, std::uint64_t committed,
                     const std::optional<Missing>& awaited = {});
  /// A worker that SIGTERM has ended counts as a request to preempt the job.
  Actions process_ended(const ProcessEnded& ended, const Whereabouts& where,
                        std::uint64_t committed);
  /// The link to a worker has ended, after all messages that its process had sent.
  Actions link_down(int worker);
  /// The time of a LinkGrace is over. A process whose link broke, and that did not end, is lost.
  Actions link_grace_over(int worker, std::uint64_t number, const Whereabouts& where,
                          std::uint64_t committed);
  /// These workers live, but haven't moved for too long; `why` says for how long.
  Actions hung(std::span<const Sighting> hanging, const std::string& why, std::uint64_t committed);
  /// A Backoff, a GatherDeadline or a Grace is over. `sightings`: of the workers in unwinding().
  Actions restart_due(int worker);
  Actions gather_deadline(std::uint64_t generation, std::span<const Sighting> sightings = {});
  Actions grace_over(std::span<const Sighting> sightings = {});
  /// A loop has asked whether it is to end: loops of later generations will, too.
  void asks() { asks_ = true; }
  bool has_asked() const { return asks_; }
  /// The job is to end soon, for this reason. Its loops end at one step, and save their state.
  Actions preempt(std::string why);
  /// The worker begins neither this step nor a later one.
  Actions paused(int worker, std::uint64_t generation, std::uint64_t step);
  Actions cancel(Errc code, std::string message, int worker = -1, std::uint64_t step = 0);
  bool reported(const Report& report);        ///< false for one that an earlier generation has made
  std::vector<std::string> returned() const;  ///< by each loop, as CBOR; empty: it ended not well
  CheckpointTally& checkpoints() { return checkpoints_; }

  std::vector<int> unwinding() const;
  /// The workers that others wait for: to show a program, or to leave or end their loops.
  std::vector<int> awaited() const;
  int pid(int worker) const { return at(worker).pid; }
  /// Whether its process has ended before its loop.
  bool is_lost(int worker) const { return !at(worker).is_started && !at(worker).ended; }
  JobPhase phase() const { return phase_; }
  bool over() const { return phase_ == JobPhase::succeeded || phase_ == JobPhase::failed; }
  std::uint64_t generation() const { return generation_; }
  const std::optional<Failure>& failure() const { return failure_; }
  const Recovery& recovery() const { return recovery_; }

 private:
  enum class Place : std::uint8_t {
    due,        ///< its process is to be started when restart_due() says so
    starting,   ///< its process has been started, or is about to be
    ready,      ///< it has joined, or left its loop
    looping,    ///< it is in the loop of this generation, or at its end
    unwinding,  ///< it is still in the loop of the generation before
    dying,      ///< its process is being killed, and is to be started again
    left,       ///< its loop has ended well, and its process too
  };
  struct Worker {
    int pid = 0;
    bool is_started = false;  ///< the process `pid` hasn't been seen to end
    Place place = Place::starting;
    std::optional<LoopEnded> ended;
    std::optional<std::uint64_t> paused;  ///< the first step that it doesn't begin
    int in_vain = 0;  ///< how many processes in a row have ended before they joined
    bool is_linked = false, awaits_link_end = false;  ///< its next process waits for its link's end
    std::uint64_t link_grace = 0;                     ///< the number of the last LinkGrace
  };
  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  /// Whether the worker is in the loop of the generation that runs, and this is that generation.
  bool takes_part(int worker, std::uint64_t generation) const;
  std::string name(int worker) const;
  Actions start_if_gathered(std::uint64_t committed);
  /// The job goes on until the worker has come again, or fails. `alive`: its process is killed.
  Actions lose(Failure failure, bool alive, std::uint64_t committed, LossKind kind = {});
  Failure uneven(const LoopEnded& told, std::string message) const;
  Actions unfit(const LoopEnded& ended, std::uint64_t committed);
  Action come_again(int worker);
  Action launch(int worker);
  std::string also_hanging(std::span<const Sighting> hanging, int but) const;
  std::string missing_text(std::span<const Sighting> sightings) const;
  Actions end_preempted(const std::string& how, const Failure& lost = {});
  std::optional<std::string> end_of_preempted(const Failure& lost, bool is_survived) const;
  Actions fail_with(Failure failure);
  void end_well();
  Actions end_if_paused();

  JobTerms terms_;
  std::vector<Worker> workers_;
  std::set<int> ended_pids_;  ///< processes whose requests to join may still be on their way
  Recovery recovery_;
  CheckpointTally checkpoints_;
  std::vector<ReportFilter> reports_;  // by worker
  std::uint64_t granted_ = 0;
  std::uint64_t generation_ = 1;
  JobPhase phase_ = JobPhase::gathering;
  std::optional<Failure> failure_;
  std::optional<std::string> preempted_;  ///< why
  bool asks_ = false;
  /// Programs shown by some workers and not yet by all, by sequence number.
  std::map<std::uint32_t, std::vector<ProgramSeen>> pending_;
};

}  // namespace weft
