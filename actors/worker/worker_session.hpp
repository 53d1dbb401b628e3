#pragma once
/// WorkerSession: the loop of one generation in a worker, and the objects that it uses.

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weft/train/train_context.hpp>

#include "actors/data/job_checkpoints.hpp"
#include "actors/data/job_loaders.hpp"
#include "actors/data/report_log.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "actors/worker/host_wires.hpp"
#include "actors/worker/worker.hpp"
#include "chips/registry/registry.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Measures how long each stage of the start-up takes.
class StageClock {
 public:
  explicit StageClock(std::vector<BootstrapStage> stages) : stages_(std::move(stages)) {}
  void ended(const char* stage);
  std::vector<BootstrapStage> take() { return std::move(stages_); }

 private:
  std::vector<BootstrapStage> stages_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Returns whether each worker has its own cores (WEFT_OWN_CORES).
bool owns_cores();

/// Returns where the exception was thrown. Skips errors that weft throws in the other workers when
/// a worker is lost, because finding a place takes tens of milliseconds.
std::string place_of(const std::exception_ptr& thrown, Errc code);

/// The destructor ends all use of the job's memory.
class WorkerSession {
 public:
  WorkerSession(WorkerLink& link, const WorkerIdentity& identity, const Assignment& assignment,
                const Start& start, JobMemory& memory, Board& board, BlackBoxWriter& box);

  void run(const BoundLoop& loop, ReportLog& reports, StageClock& stages);

  std::uint64_t steps() const { return runtime_.step(); }
  std::uint64_t runs() const { return runtime_.runs(); }
  bool left() const { return left_; }
  const std::string& returned() const { return returned_; }
  bool has_mesh() const { return !assignment_.mesh_shape.empty(); }
  void leave_collectives(JobMemory& memory) const;
  std::string last_site() const;

 private:
  JobMemory& memory_of(JobMemory& job) { return own_memory_ ? *own_memory_ : job; }
  std::vector<int> local_positions() const;
  std::vector<std::unique_ptr<DeviceLink>> start_devices(JobMemory& memory);
  void device_failed(const std::exception_ptr& failure, std::uint64_t step);

  WorkerLink& link_;
  const int worker_;
  const std::string job_id_;
  const Assignment assignment_;
  const ChipKind& kind_;
  const Start start_;
  Board& board_;
  BlackBoxWriter& box_;
  const Recorder recorder_;
  const Mesh mesh_;                        // the mesh for the memory
  std::shared_ptr<ResumedState> resumed_;  // null unless the loop resumes a checkpoint
  std::optional<JobMemory> own_memory_;
  const HostWires wires_;
  const StateSource state_source_;
  WorkerRuntime runtime_;
  JobLoaders loaders_;
  JobCheckpoints checkpoints_;
  bool left_ = false;
  std::string returned_;
};

}  // namespace weft
