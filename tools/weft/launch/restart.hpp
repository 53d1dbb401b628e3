#pragma once
/// What `weft launch` does when its program, the trainer of a job, was killed.

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

namespace weft {

/// From where the program is to go on when it is started again.
struct GoOn {
  int fit_number = 1;         ///< the fit() call of the program that ran the job
  std::string checkpoints{};  ///< a folder with a checkpoint; "": it begins again
  std::uint64_t step = 0;     ///< of the newest one
  std::string note{};         ///< the dead job's rescued.json
};

/// Saves the last step of the job that the dead process `trainer`, not reaped yet, has left, and
/// removes its memory. Where that can't be saved, the newest checkpoint in the job's folder counts,
/// and stderr has the reason. Absent if there is none, or the process had no job.
std::optional<GoOn> save_job_of(pid_t trainer);

/// Whether to start a program again that was lost, and from where.
class Restarts {
 public:
  /// `max`: how often at most; -1: any number of times.
  explicit Restarts(int max) : max_(max) {}

  /// `ended`: how process `pid` did, which isn't reaped yet. Where nothing newer is saved, the
  /// program begins where it began before. Absent where it isn't started again: stderr has the
  /// reason, if it was lost and `max` isn't 0.
  std::optional<GoOn> after(pid_t pid, const siginfo_t& ended);

 private:
  static constexpr int kWithoutAStepMax = 3;
  const int max_;
  int count_ = 0;
  int without_a_step_ = 0;  // deaths in a row
  std::optional<GoOn> from_;
};

}  // namespace weft
