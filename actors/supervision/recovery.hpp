#pragma once
/// Recovery: which failures a job survives, and how soon it tries again. Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <weft/result.hpp>

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

/// Workers that are lost before the loops of the next generation begin are one incident: that is
/// what max_failures counts, and what is waited for longer where it repeats. The same worker, lost
/// again meanwhile, is the next one.
class Recovery {
 public:
  explicit Recovery(RecoveryPolicy policy) : policy_(policy) {}

  /// Nothing where the job survives the failure, which is taken down then; else why not, to be
  /// added to its message: "" where no failure is survived. `committed`: the step that the job
  /// would go on at.
  std::optional<std::string> refuse(const Failure& failure, std::uint64_t committed);
  /// All are there again, and begin at this step.
  void resumed(std::uint64_t step);
  /// How long to wait before the worker that was lost last is started again.
  std::uint64_t delay_ms() const;
  Restart restart() const { return policy_.restart; }
  /// Those that were survived.
  const std::vector<Failure>& failures() const { return failures_; }
  int incidents() const { return incidents_; }

 private:
  RecoveryPolicy policy_;
  std::vector<Failure> failures_;
  std::set<int> incident_;  ///< the workers of the one under way
  int incidents_ = 0;
  std::uint64_t last_step_ = 0;  ///< at which the job went on, or would have, after the last one
  int in_a_row_ = 0;             ///< incidents since a step was taken
};

}  // namespace weft
