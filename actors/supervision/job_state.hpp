#pragma once
/// The trainer's protocol as a pure state machine: events come in, actions go out. It has no clock,
/// no I/O and no actor. Deadlines are events too, and the owner carries out the actions.
///
/// A job runs in generations. In each generation the workers gather, run their loops from the same
/// step, and end them together. If a worker is lost, it is started again, the others unwind their
/// loops, and all gather for the next generation. Invariants:
/// 1. The first failure is kept. Later ones may be its consequences, so they don't replace it.
/// 2. A program runs only after every worker has shown it under the same sequence number.
/// 3. Within a generation, leases only grow and are the same for all workers.
/// 4. A generation starts when every worker has joined and none runs anything, at the step that all
///    chips have committed (commits.hpp) or, if no state is kept, at a checkpoint's step.
/// 5. Workers' messages about generations other than the current one are ignored.
/// 6. After `cancel` or `stop`, no other action follows.
/// 7. Loops of a preempted job are told to end at the first step that none of them has begun. Such
///    a job skips backoffs, and starts no worker if its loops don't ask whether to end.
/// 8. Workers that are lost while all gather count as one incident (recovery.hpp).
/// 9. A generation starts when every host is prepared. A loss before that makes all gather again.
/// 10. The loss of a host counts as one incident, however many workers it has.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weft/job/result.hpp>

#include "actors/protocol/host_messages.hpp"
#include "actors/protocol/sighting.hpp"
#include "actors/supervision/action.hpp"
#include "actors/supervision/checkpoint_tally.hpp"
#include "actors/supervision/membership.hpp"
#include "actors/supervision/recovery.hpp"
#include "actors/supervision/report_filter.hpp"

namespace weft {

enum class JobPhase : std::uint8_t { gathering, preparing, running, succeeded, failed };

class JobState {
 public:
  explicit JobState(const JobTerms& terms);
  Actions begin() const { return {action::GatherDeadline{deadlines_}}; }
  const JobHosts& hosts() const { return hosts_; }
  /// Called when a host that hosts() accepts has joined. The host's agent starts its workers.
  void host_joined(const HostArrival& arrival);
  /// Called when a host is lost. The job waits for a host that takes its place. `is_copied` is true
  /// if each other host has the whole state.
  Actions host_lost(int host, const std::string& why, bool is_copied, std::uint64_t committed);
  /// Called when a host has carried out the Prepare with this number.
  Actions prepared(int host, std::uint64_t number);
  void started(int worker, int pid);
  /// Returns why this worker may not join. If it returns nothing, joined() must follow.
  std::optional<std::string> refuse_join(int worker, int pid) const;
  /// `committed`, here and below, is the step that all chips have committed (common_step()).
  Actions joined(int worker, int pid, std::uint64_t committed);
  Actions unwound(int worker, std::uint64_t generation, std::uint64_t committed);
  Actions program(const ProgramSeen& program);
  Actions lease_wanted(std::uint64_t step);
  /// `awaited` is the worker for which the ended worker waited, if known. It explains a timeout.
  Actions loop_ended(const LoopEnded& ended, std::uint64_t committed,
                     const std::optional<Missing>& awaited = {});
  /// A worker that SIGTERM has ended counts as a request to preempt the job.
  Actions process_ended(const ProcessEnded& ended, const Whereabouts& where,
                        std::uint64_t committed);
  /// Called when the link to a worker has ended, after all messages of its process.
  Actions link_down(int worker);
  Actions link_grace_over(int worker, std::uint64_t number, const Whereabouts& where,
                          std::uint64_t committed);
  /// Called when a connection between chips has broken. If no worker or host is lost during the
  /// WireGrace, the loops begin again with new connections.
  Actions wire_lost(const WireLost& lost);
  Actions wire_grace_over(std::uint64_t generation, std::uint64_t committed);
  /// Called when workers are alive but have made no progress for too long. `why` says for how long.
  Actions hung(std::span<const Sighting> hanging, const std::string& why, std::uint64_t committed);
  // Called when a timer of an action is over. `sightings` describes the workers in unwinding().
  Actions restart_due(int worker);
  Actions gather_deadline(std::uint64_t number, std::span<const Sighting> sightings = {});
  Actions grace_over(std::span<const Sighting> sightings = {});
  /// Called when a loop has asked whether it is to end. Later loops are assumed to ask too.
  void asks() { asks_ = true; }
  bool has_asked() const { return asks_; }
  /// Called when the job must end soon. Its loops then end at the same step and save their state.
  Actions preempt(std::string why);
  /// Called when the worker has promised not to begin this step or a later one.
  Actions paused(int worker, std::uint64_t generation, std::uint64_t step);
  Actions cancel(Errc code, std::string message, int worker = -1, std::uint64_t step = 0);
  bool reported(const Report& report);        ///< returns false for a repeated report
  std::vector<std::string> returned() const;  ///< loops' values as CBOR; empty without success
  CheckpointTally& checkpoints() { return checkpoints_; }

  std::vector<int> unwinding() const;
  std::vector<int> awaited() const;  ///< workers for which others wait
  ProcessId process(int worker) const { return {worker, at(worker).pid}; }
  /// Returns whether the worker's process has ended before its loop.
  bool is_lost(int worker) const { return !at(worker).is_started && !at(worker).ended; }
  JobPhase phase() const { return phase_; }
  bool over() const { return phase_ == JobPhase::succeeded || phase_ == JobPhase::failed; }
  std::uint64_t generation() const { return generation_; }
  const std::optional<Failure>& failure() const { return failure_; }
  const Recovery& recovery() const { return recovery_; }

 private:
  using Place = MemberPlace;
  WorkerMember& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const WorkerMember& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  bool takes_part(int worker, std::uint64_t generation) const;
  std::string name(int worker) const;
  Actions prepare_if_gathered(std::uint64_t committed);
  Actions start_if_prepared();
  Actions lose(Failure failure, bool alive, std::uint64_t committed, LossKind kind = {});
  std::optional<Actions> end_by(Failure& failure, std::uint64_t committed, LossKind kind = {});
  Actions end_generation(const Failure& failure, std::uint64_t committed);
  Actions gather_again(int lost);
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
  std::vector<WorkerMember> workers_;
  JobHosts hosts_;
  std::uint64_t next_step_ = 0;          ///< the step at which the generation prepared last begins
  std::optional<WireLost> wire_lost_{};  ///< the first loss in this generation
  std::set<ProcessId> ended_;            ///< processes whose requests to join may still arrive
  Recovery recovery_;
  CheckpointTally checkpoints_;
  std::vector<ReportFilter> reports_;  // by worker
  std::uint64_t granted_ = 0;
  std::uint64_t generation_ = 1;
  std::uint64_t deadlines_ = 1;  ///< the number of the last GatherDeadline
  JobPhase phase_ = JobPhase::gathering;
  std::optional<Failure> failure_;
  std::optional<std::string> preempted_;  ///< why the job is preempted
  bool asks_ = false;
  /// The programs that not all workers have shown, by sequence number.
  std::map<std::uint32_t, std::vector<ProgramSeen>> pending_;
};

}  // namespace weft
