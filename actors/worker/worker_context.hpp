#pragma once
/// WorkerContext: the TrainContext of a worker.

#include <optional>
#include <string>
#include <vector>

#include <weft/train/train_context.hpp>

#include "actors/data/job_checkpoints.hpp"
#include "actors/data/job_loaders.hpp"
#include "actors/data/report_log.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/publish/loop_publishers.hpp"
#include "actors/runtime/worker_link.hpp"
#include "actors/runtime/worker_runtime.hpp"

namespace weft {

class WorkerContext : public TrainContext {
 public:
  WorkerContext(int worker, std::string job_id, const Assignment& assignment, const Start& start,
                WorkerLink& link, WorkerRuntime& runtime, JobCheckpoints& checkpoints,
                JobLoaders& loaders, ReportLog& reports, std::vector<BootstrapStage> stages);

  const Mesh* mesh() const override { return runtime_.mesh(); }
  bool is_spmd_backend() const override { return mesh() != nullptr; }
  int world_size() const override { return assignment_.num_workers; }
  int world_rank() const override { return worker_; }
  int local_rank() const override {
    return worker_ % (assignment_.num_workers / assignment_.num_hosts);
  }
  int num_devices() const override {
    return assignment_.num_workers * assignment_.chips_per_worker;
  }
  int num_local_devices() const override { return assignment_.chips_per_worker; }
  DeviceKind device_kind() const override { return assignment_.device; }
  const std::string& job_id() const override { return job_id_; }
  const std::string& run_dir() const override { return assignment_.run_dir; }
  std::uint64_t seed() const override { return assignment_.seed; }
  std::uint64_t step() const override;
  const std::optional<Checkpoint>& checkpoint() const override { return checkpoint_; }
  bool reached_preemption() const override {
    ++*loaders_.questions();
    return link_.permits().reached_preemption();
  }
  std::vector<Command> commands(std::source_location where) override;
  std::vector<Command> earlier_commands() override;
  std::vector<Command> wait_commands(std::source_location where) override;
  void report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint,
              std::source_location where) override;
  void on_each_chip(const std::function<void(Chip&)>& body, std::source_location where) override {
    runtime_.call_on_chips(body, where);
  }
  const std::vector<BootstrapStage>& bootstrap_trace() const override { return stages_; }
  const std::string& site() const { return assignment_.loop.site; }
  LoopPublishers& publishers() { return publishers_; }

 private:
  ArenaPlace allocate_bytes(std::int64_t size, std::size_t element_bytes,
                            const std::source_location& where) override {
    return runtime_.allocate(size, element_bytes, where);
  }
  JobCheckpoints& checkpoints() override;
  void begin_commands(const Start& start);
  std::vector<Command> read_commands();
  JobLoaders& loaders() override { return loaders_; }
  /// Warns of the first metric that isn't finite.
  void look_for_nan(const Metrics& metrics, const std::source_location& where);

  const int worker_;
  const std::string job_id_;
  const Assignment assignment_;
  const std::optional<Checkpoint> checkpoint_;
  WorkerLink& link_;
  WorkerRuntime& runtime_;
  JobCheckpoints& checkpoints_;
  JobLoaders& loaders_;
  ReportLog& reports_;
  const std::vector<BootstrapStage> stages_;
  LoopPublishers publishers_;
  std::uint64_t report_step_ = 0;        // the step of the last report
  std::uint32_t report_number_ = 0;      // number of the next report at that step
  std::uint32_t checkpoint_number_ = 0;  // number of the next checkpoint, the same in all workers
  bool warned_of_nan_ = false;
  mutable std::uint64_t asked_step_ = 0;  // the last result of step()
  mutable std::uint64_t asked_ = 0;       // how often step() has returned asked_step_
};

/// Returns a loop's value as CBOR; "" for null. Throws invalid_argument if it is too large for a
/// message.
std::string returned_bytes(const Metrics& returned);

/// Returns a source line: where the job of this thread's loop was started, or where its Loop is
/// defined. Returns nothing if this thread runs no loop.
std::optional<std::string> site_of_this_threads_loop();

}  // namespace weft
