#pragma once
/// Trainer: runs a loop on every worker of a mesh (Ray Train's TorchTrainer).

#include <source_location>
#include <stop_token>

#include <weft/actors/job/job.hpp>
#include <weft/actors/job/loop.hpp>
#include <weft/actors/trainer/config.hpp>
#include <weft/actors/trainer/result.hpp>
#include <weft/actors/trainer/train_loop.hpp>

namespace weft {

/// Jobs of one loop. A loop with a name (Loop) may run in any number of jobs at once, started on
/// any thread, in a program that calls weft::worker_main() first. For one without, main() runs
/// again in each worker process, with the same arguments, up to the same fit() call.
class Trainer {
 public:
  explicit Trainer(const Loop& loop, TrainerOptions options = {});
  explicit Trainer(TrainLoop loop, TrainerOptions options = {});

  /// Validates, then runs a job to its end. A job that fails, or is told to end (by `stop`, as
  /// Job::stop() does, or by a signal), gives a Result with an error, not an exception. What is
  /// thrown: invalid_argument, mesh_mismatch, not_found, unavailable, version, no_space or io
  /// before anything has started, and whatever a callback threw.
  ///
  /// A loop without a name, in a worker process: the call of the job runs the loop and doesn't
  /// return; calls before it return there what they returned in the trainer's process (or throw it
  /// as a weft::Error). One such job with workers runs at a time.
  Result fit(std::stop_token stop = {},
             std::source_location where = std::source_location::current());

  /// The same in the background, for loops with names, or without workers (num_workers = 0). Throws
  /// what fit() throws before anything has started.
  Job start(std::source_location where = std::source_location::current());

 private:
  const Loop* named_ = nullptr;
  TrainLoop loop_;
  TrainerOptions options_;
};

}  // namespace weft
