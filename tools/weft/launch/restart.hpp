#pragma once
/// The restart of a program, the trainer of a job, that was killed under `weft launch`.

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

namespace weft {

/// The point from which the program continues when it is started again.
struct GoOn {
  int fit_number = 1;         ///< the fit() call of the program that ran the job
  std::string checkpoints{};  ///< a folder with a checkpoint; "": it begins again
  std::uint64_t step = 0;     ///< step of the newest one
  std::string note{};         ///< the dead job's rescued.json
};

/// Saves the last step of the job that the dead process `trainer`, which isn't reaped yet, has
/// left, and removes the job's memory. If the step can't be saved, returns the newest checkpoint in
/// the job's folder and prints the reason on stderr. Absent if there is no checkpoint, or if the
/// process had no job.
std::optional<GoOn> save_job_of(pid_t trainer);

/// Decides whether a lost program is started again, and from which point.
class Restarts {
 public:
  /// `max` is the largest number of restarts; -1: any number.
  explicit Restarts(int max) : max_(max) {}

  /// `ended` says how process `pid`, which isn't reaped yet, has ended. If nothing newer is saved,
  /// the program begins where it began before. Absent if it isn't started again; if it was lost and
  /// `max` isn't 0, the reason is printed on stderr.
  std::optional<GoOn> after(pid_t pid, const siginfo_t& ended);

 private:
  static constexpr int kWithoutAStepMax = 3;
  const int max_;
  int count_ = 0;
  int without_a_step_ = 0;  // deaths in a row without a step between them
  std::optional<GoOn> from_;
};

}  // namespace weft
