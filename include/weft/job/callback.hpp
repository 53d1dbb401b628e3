#pragma once
/// Callback: informs a program about a job while it runs.

#include <cstdint>
#include <string>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>

namespace weft {

/// Reports that no loop, chip or worker of a job has moved for some time.
struct HangReport {
  double seconds = 0;      ///< how long nothing has moved
  std::uint64_t step = 0;  ///< the largest number of steps that a loop has ended
  std::string why{};       ///< what `weft inspect why` says, in lines
  std::string path{};      ///< the folder with copies of the board and the events; "" if none
};

/// Receives a run's progress in the process that called fit() or start(): on the thread of fit(),
/// or on the job's own thread after start(). An exception of a callback cancels the job, and fit()
/// or result() rethrows it.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_start(const JobInfo&) {}
  /// Receives each report of worker 0. These reports form Result::metrics_history.
  virtual void on_report(const Metrics&) {}
  /// Called with the number of steps that the loop of worker 0 has ended: at most ten times a
  /// second, and once more for the last step. Steps in between aren't reported, nor are steps that
  /// run again after a loss.
  virtual void on_step(std::uint64_t /*step*/) {}
  /// Called when a worker is lost and the job survives it, with the entry of Result::failures. Also
  /// called at the end with Result::error, unless the job was told to end.
  virtual void on_failure(const Failure&) {}
  /// Called when all workers run again after failures, and their loops begin at this step.
  virtual void on_recovered(std::uint64_t /*step*/) {}
  /// Called when a checkpoint is complete and can be restored: a CheckpointManager has saved it, or
  /// all workers have reported it. `step` is the step of its state. A checkpoint that is saved
  /// again after a loss isn't reported again.
  virtual void on_checkpoint(const Checkpoint&, std::uint64_t /*step*/) {}
  /// Called when nothing has moved for longer than FailureConfig::hang_warning_s or, if that isn't
  /// set, than the job's steps suggest: 10 times the 99th percentile of their durations, at least
  /// 5 s (30 s while a loop compiles, loads or saves, 60 s before the first step). A step, a
  /// collective, a batch or any other call of weft counts as movement. It is called once for each
  /// hang; the job continues, and may move again. The log has the same text.
  virtual void on_hang(const HangReport&) {}
  /// Called when a validation has ended or was skipped.
  virtual void on_validation(const Validation&) {}
  virtual void on_end(const Result&) {}
};

}  // namespace weft
