#include "bench/accelerators/asked_training.hpp"

#include <utility>

namespace weft::bench {

AskedTraining::AskedTraining(const ModelTrainingOptions& options, DeviceKind device, int chips) {
  const auto train = [this, options](TrainContext& ctx) {
    try {
      loop(ctx, options);
    } catch (...) {
      end();
      throw;
    }
    end();
  };
  job_ = Trainer(train, {.scaling = {.num_workers = 0, .chips_per_worker = chips, .device = device},
                         .backend = {.spmd = {.mesh_shape = {chips}, .axis_names = {"data"}}},
                         .run = {.name = "bench", .storage_path = options.folder}})
             .start();
  ask([](ModelTraining&) {});
}

AskedTraining::~AskedTraining() {
  {
    const std::lock_guard lock(mutex_);
    request_.emplace();
  }
  changed_.notify_all();
  job_.wait();
}

TrainedSteps AskedTraining::train(int count) {
  TrainedSteps steps;
  ask([&](ModelTraining& training) { steps = training.run(count); });
  return steps;
}

void AskedTraining::write_batches() {
  ask([](ModelTraining& training) { training.write_batches(); });
}

void AskedTraining::ask(Request request) {
  std::unique_lock lock(mutex_);
  request_ = std::move(request);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !request_ || has_ended_; });
  if (!has_ended_) return;
  lock.unlock();
  const Result result = job_.result();
  fail(result.ok() ? Errc::cancelled : result.error->code, "the training has ended: {}",
       result.ok() ? "its loop has returned" : result.error->message);
}

void AskedTraining::loop(const TrainContext& ctx, const ModelTrainingOptions& options) {
  ModelTraining training(options, *ctx.mesh());
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return request_.has_value(); });
    if (!*request_) return;
    const Request request = *request_;
    lock.unlock();
    request(training);
    lock.lock();
    request_.reset();
    changed_.notify_all();
  }
}

/// Ends the waits of ask() after the loop's end.
void AskedTraining::end() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
}

}  // namespace weft::bench
