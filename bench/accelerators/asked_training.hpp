#pragma once
/// AskedTraining: a training job in this process that makes steps when it is asked to, so that
/// several such jobs take turns.

#include <condition_variable>
#include <mutex>
#include <optional>

#include "bench/training/model_training.hpp"

namespace weft::bench {

class AskedTraining {
 public:
  /// Starts a job on `chips` chips of the kind, and waits until its loop can be asked. The job's
  /// run folder is in options.folder. Throws what the start of the job throws.
  AskedTraining(const ModelTrainingOptions& options, DeviceKind device, int chips);
  AskedTraining(const AskedTraining&) = delete;
  AskedTraining& operator=(const AskedTraining&) = delete;
  /// Ends the loop.
  ~AskedTraining();

  /// Makes steps. Throws the error of the job if it has failed.
  TrainedSteps train(int count);
  /// Writes the batches as ModelTraining does.
  void write_batches();

 private:
  /// Asks the loop to do something. An empty function ends the loop.
  using Request = std::function<void(ModelTraining&)>;
  void ask(Request request);
  void loop(const TrainContext& ctx, const ModelTrainingOptions& options);
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Request> request_{};
  bool has_ended_ = false;
  Job job_;
};

}  // namespace weft::bench
