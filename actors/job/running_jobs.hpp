#pragma once
/// The jobs that run in this process.

namespace weft {

/// While it lives, a job of so many chips runs here. Throws unavailable where 64 do already, and
/// invalid_argument for a second one under `weft launch`, whose workers and chips are those of one
/// job.
class RunningJob {
 public:
  explicit RunningJob(int num_chips);
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  /// Chips of all jobs that ran when this one began, itself among them; 0 where it was alone.
  int crowd() const { return crowd_; }

 private:
  int num_chips_;
  int crowd_;
};

}  // namespace weft
