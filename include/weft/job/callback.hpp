#pragma once
/// Callback: tells a program about a job while it runs.

#include <cstdint>

#include <weft/job/config.hpp>
#include <weft/job/result.hpp>

namespace weft {

/// Receives a run's progress in the process that called fit() or start(): on the thread of fit(),
/// or on the job's own thread after start(). An exception of a callback cancels the job, and fit()
/// or result() rethrows it.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_start(const JobInfo&) {}
  /// Receives each report of worker 0. These reports form Result::metrics_history.
  virtual void on_report(const Metrics&) {}
  /// Called when a worker is lost and the job survives it, with the entry of Result::failures. Also
  /// called at the end with Result::error, unless the job was told to end.
  virtual void on_failure(const Failure&) {}
  /// Called when all workers run again after failures, and their loops begin at this step.
  virtual void on_recovered(std::uint64_t /*step*/) {}
  /// Called when a validation has ended or was skipped.
  virtual void on_validation(const Validation&) {}
  virtual void on_end(const Result&) {}
};

}  // namespace weft
