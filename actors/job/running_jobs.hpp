#pragma once
/// RunningJob: counts the jobs that run in this process, and their chips.

namespace weft {

/// Counts a job and its chips during the object's lifetime. The constructor throws unavailable if
/// 64 jobs already run in this process. It throws invalid_argument for a second job under `weft
/// launch`, which assigns workers and chips to only one job.
class RunningJob {
 public:
  explicit RunningJob(int num_chips);
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Returns the number of chips of all jobs that ran when this job began, including its own chips;
  /// 0 if no other job ran.
  int crowd() const { return crowd_; }

 private:
  int num_chips_;
  int crowd_;
};

}  // namespace weft
