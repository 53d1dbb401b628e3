#pragma once
/// Callback: what a program is told of a job while it runs.

#include <cstdint>

#include <weft/config.hpp>
#include <weft/result.hpp>

namespace weft {

/// Receives a run's progress, in the process and on the thread that called fit(), or on the job's
/// own thread after start(). An exception of a callback cancels the job and is rethrown by fit() or
/// result().
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_start(const JobInfo&) {}
  /// A report of worker 0, whose reports make the history.
  virtual void on_report(const Metrics&) {}
  /// A loss that the job survives, when it comes: each entry of Result::failures, and at last
  /// Result::error, unless the job was told to end.
  virtual void on_failure(const Failure&) {}
  /// All workers are there again after failures, and their loops begin at this step.
  virtual void on_recovered(std::uint64_t /*step*/) {}
  /// A validation has ended, or was skipped.
  virtual void on_validation(const Validation&) {}
  virtual void on_end(const Result&) {}
};

}  // namespace weft
