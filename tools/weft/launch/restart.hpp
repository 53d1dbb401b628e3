#pragma once
/// Restarts: starts a program again that was the trainer of a job and was killed under
/// `weft launch`.

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

namespace weft {

/// The point from which the program continues when it is started again.
struct GoOn {
  int fit_number = 1;         ///< the fit() call of the program that ran the job
  std::string checkpoints{};  ///< a folder with a checkpoint; "": training begins again
  std::uint64_t step = 0;     ///< the step of the newest checkpoint
  std::string note{};         ///< the path of the dead job's rescued.json
};

/// Saves the last step of the job whose trainer, the process `trainer`, has died but isn't reaped
/// yet. Then removes the job's memory. If the step can't be saved, returns the newest checkpoint in
/// the job's folder and prints the reason on stderr. Returns nothing if there is no checkpoint, or
/// if the process had no job.
std::optional<GoOn> save_job_of(pid_t trainer);

/// Decides whether a lost program is started again, and from which point.
class Restarts {
 public:
  /// `max` is the largest number of restarts; -1: any number.
  explicit Restarts(int max) : max_(max) {}

  /// Returns the point from which the program continues, or nothing if it isn't started again.
  /// `ended` says how process `pid`, which isn't reaped yet, has ended. If nothing newer was saved,
  /// this is the point from which the program continued last time. If a lost program isn't started
  /// again and `max` isn't 0, prints the reason on stderr.
  std::optional<GoOn> after(pid_t pid, const siginfo_t& ended);

 private:
  static constexpr int kWithoutAStepMax = 3;
  const int max_;
  int count_ = 0;
  int without_a_step_ = 0;  // consecutive deaths without a step in between
  std::optional<GoOn> from_;
};

}  // namespace weft
