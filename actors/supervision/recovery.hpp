#pragma once
/// Recovery: decides which failures a job survives, and how long it waits before it starts a lost
/// worker again. It does no I/O.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <weft/job/failure_config.hpp>
#include <weft/job/result.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/supervision/action.hpp"

namespace weft {

/// The checked values of a FailureConfig.
struct RecoveryPolicy {
  int max_failures = 0;  ///< the limit on incidents; -1: no limit
  Restart restart = Restart::worker;
  std::uint64_t backoff_ms = 0;

  /// Returns whether the policy lets a job survive a loss.
  bool recovers() const { return max_failures != 0 && restart != Restart::none; }
};

/// The job's options that JobState needs.
struct JobTerms {
  int num_workers = 1;
  int num_hosts = 1;  ///< each host has the same number of workers, numbered host by host
  RecoveryPolicy recovery{};
  std::uint64_t lease_steps = kLeaseSteps;
  bool keeps_state = true;                  ///< see CheckpointTally
  std::optional<WholeCheckpoint> resume{};  ///< the checkpoint with which the job begins
  double timeout_s = 0;                     ///< backend.timeout_s, the limit on the time that
                                            ///< workers take to gather
  double grace_s = 0;  ///< run.grace_s, the time that a preempted job has to end; 0: the job is
                       ///< cancelled at once
  bool any_process_joins = false;  ///< a process may join although the trainer hasn't started it
  bool has_processes = true;       ///< false: the only worker is a thread of the trainer's process
};

/// Returns whether a signal ended the worker that usually comes from another process, such as
/// SIGKILL.
bool is_kill(const Failure& failure);

/// Distinguishes losses whose failures look the same.
enum class LossKind : std::uint8_t {
  other,
  out_of_memory,  ///< the kernel killed the worker for lack of memory, so it may well happen again
  before_join,    ///< the process ended by itself before it joined; JobState counts these losses
  host,           ///< its host is lost, which is assumed to be an accident, like a kill
};

/// An incident is the loss of one or more workers before the loops of the next generation begin. A
/// worker that is lost twice in that time causes two incidents. max_failures limits the number of
/// incidents. The delay grows with the number of incidents since the job last made a step.
class Recovery {
 public:
  explicit Recovery(RecoveryPolicy policy) : policy_(policy) {}

  /// If the job survives the failure, counts it and returns nothing. Otherwise returns the reason,
  /// which is added to the failure's message; it is "" if the policy survives no failure at all.
  /// `committed` is the step at which the job would continue.
  std::optional<std::string> refuse(const Failure& failure, std::uint64_t committed,
                                    LossKind kind = LossKind::other);
  /// Called when all workers have joined again and their loops begin at this step.
  void resumed(std::uint64_t step);
  /// Returns the milliseconds to wait before the worker that was lost last is started again.
  std::uint64_t delay_ms() const;
  Restart restart() const { return policy_.restart; }
  /// Returns the failures that the job has survived.
  const std::vector<Failure>& failures() const { return failures_; }
  int incidents() const { return incidents_; }

 private:
  RecoveryPolicy policy_;
  std::vector<Failure> failures_;
  std::vector<Failure> in_vain_;  ///< failures since the job last made a step
  std::set<int> incident_;  ///< the workers lost in the current incident; empty: there is none
  int incidents_ = 0;
  std::uint64_t last_step_ =
      0;              ///< the step at which the loops last continued or, after an incident, would
                      ///< continue
  int in_a_row_ = 0;  ///< incidents since the job last made a step
};

}  // namespace weft
