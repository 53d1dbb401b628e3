#pragma once
/// Recovery: which failures a job survives, and how long it waits before it starts a lost worker
/// again. Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <weft/result.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/supervision/action.hpp"

namespace weft {

enum class Restart : std::uint8_t {
  worker,  ///< the lost worker is started again, the others keep their processes
  group,   ///< all are
  none,
};

/// FailureConfig, checked.
struct RecoveryPolicy {
  int max_failures = 0;  ///< incidents; -1: any number
  Restart restart = Restart::worker;
  std::uint64_t backoff_ms = 0;

  /// Whether there is a loss that the job survives.
  bool recovers() const { return max_failures != 0 && restart != Restart::none; }
};

/// What JobState has to know of the job's options.
struct JobTerms {
  int num_workers = 1;
  RecoveryPolicy recovery{};
  std::uint64_t lease_steps = kLeaseSteps;
  bool keeps_state = true;                  ///< see CheckpointTally
  std::optional<WholeCheckpoint> resume{};  ///< the job begins with it
  double timeout_s = 0;                     ///< backend.timeout_s: workers gather in that time
  double grace_s = 0;  ///< run.grace_s: what a preempted job has to end; 0: it is cancelled
  bool any_process_joins = false;  ///< not only a process that was started
  bool has_processes = true;       ///< false: the only worker is a thread of the trainer's process
};

/// Whether a signal has ended the worker that others send.
bool is_kill(const Failure& failure);

/// Tells losses apart whose failures look the same.
enum class LossKind : std::uint8_t {
  other,
  out_of_memory,  ///< the kernel killed the worker for it, so not by chance
  before_join,    ///< by itself; whoever owns the Recovery counts these
};

/// An incident is the loss of one or more workers before the loops of the next generation begin. A
/// worker that is lost twice in that time makes two incidents. max_failures counts incidents, and
/// the delay grows with the number of incidents since the job last made a step.
class Recovery {
 public:
  explicit Recovery(RecoveryPolicy policy) : policy_(policy) {}

  /// Returns nothing if the job survives the failure, and counts it then. Else returns the reason,
  /// to be added to the failure's message; "" if the policy survives no failure at all.
  /// `committed`: the step at which the job would go on.
  std::optional<std::string> refuse(const Failure& failure, std::uint64_t committed,
                                    LossKind kind = LossKind::other);
  /// All workers are there again, and their loops begin at this step.
  void resumed(std::uint64_t step);
  /// How long to wait before the worker that was lost last is started again.
  std::uint64_t delay_ms() const;
  Restart restart() const { return policy_.restart; }
  /// The failures that the job has survived.
  const std::vector<Failure>& failures() const { return failures_; }
  int incidents() const { return incidents_; }

 private:
  RecoveryPolicy policy_;
  std::vector<Failure> failures_;
  std::vector<Failure> in_vain_;  ///< those since the job last made a step
  std::set<int> incident_;  ///< the workers lost in the present incident; empty: there is none
  int incidents_ = 0;
  std::uint64_t last_step_ =
      0;              ///< at which the job went on, or would have, after the last incident
  int in_a_row_ = 0;  ///< incidents since the job last made a step
};

}  // namespace weft
