#pragma once
/// TrainContext: what a training loop knows about its place in the job (ray.train.get_context()).

#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <weft/chip.hpp>
#include <weft/config.hpp>
#include <weft/error.hpp>
#include <weft/mesh.hpp>

namespace weft {

class JobCheckpoints;
class JobLoaders;

// Preempted: the exception that ends a loop that doesn't ask whether to end.

/// Thrown by the sync after the step at which TrainContext::reached_preemption() became true, in
/// every worker, if no loop of the job has ever called it. It leaves the loop and is not a failure.
class Preempted : public Error {
 public:
  Preempted()
      : Error(Errc::cancelled,
              "the job is to end (SIGTERM), and this loop has not asked ctx.reached_preemption()") {
  }
};

/// One stage of the start-up, for bootstrap_trace().
struct BootstrapStage {
  std::string name;
  double milliseconds = 0;
};

/// One per worker. Valid while its loop runs; for the loop's thread unless said otherwise.
class TrainContext {
 public:
  virtual ~TrainContext() = default;

  /// Null if the job has no SPMD backend.
  virtual const Mesh* mesh() const = 0;
  virtual bool is_spmd_backend() const = 0;

  virtual int world_size() const = 0;  ///< workers
  virtual int world_rank() const = 0;
  virtual int local_rank() const = 0;   ///< among the workers of this host
  virtual int num_devices() const = 0;  ///< chips of the job
  virtual int num_local_devices() const = 0;
  virtual const std::string& job_id() const = 0;
  virtual const std::string& run_dir() const = 0;
  virtual std::uint64_t seed() const = 0;

  /// The number of steps (syncs) that have ended.
  virtual std::uint64_t step() const = 0;
  /// The reported checkpoint to load before the loop begins at step(). Set after the loss of a
  /// worker if the state of earlier steps is not kept (FailureConfig::state_versions = 1). A
  /// CheckpointManager's checkpoint needs no loading, and is not here.
  virtual const std::optional<Checkpoint>& checkpoint() const = 0;
  /// True once the job has been asked to end (SIGTERM to the program, `weft launch` or a worker),
  /// from the same step on in every worker. The loop should save a checkpoint, report() it, and
  /// return, within RunConfig::grace_s of the signal. All workers must call it at the same steps.
  /// If none of the job's loops has ever called it, the sync after the first such step throws
  /// Preempted.
  virtual bool reached_preemption() const = 0;
  /// Sends metrics (a JSON object, up to 1 MiB; NaN arrives as NaN, but is null in result.json) to
  /// the trainer. A checkpoint's folder is first copied into the run's folder, the files of all
  /// workers into one. Worker 0's reports make the history; all workers must report a checkpoint
  /// the same number of times. Doesn't wait for the trainer, but first runs the step closures of
  /// ended steps, so that their reports come first. Throws invalid_argument, not_found or io.
  virtual void report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint = {},
                      std::source_location where = std::source_location::current()) = 0;

  /// For computations that aren't traced: runs `body` for every chip of this worker, on the chip's
  /// own thread, after all synced work, and returns when all have ended. All workers must call it,
  /// at the same line. An exception of `body` fails the job. `body` can't use tensors or the
  /// context; it stores its results in variables of the loop. Throws unavailable if the job has no
  /// mesh, invalid_argument off the loop's thread.
  virtual void on_each_chip(const std::function<void(Chip&)>& body,
                            std::source_location where = std::source_location::current()) = 0;
  /// `size` elements on every chip, in shared memory, so that the collectives of on_each_chip()
  /// don't copy. Their values are arbitrary at first. All workers must allocate and free the same
  /// arrays in the same order. Memory of the last array is freed with it; memory of others is kept
  /// for arrays of the same size. For the loop's thread. Throws invalid_argument, no_space.
  template <ChipElement T>
  ChipArray<T> allocate(std::int64_t size,
                        std::source_location where = std::source_location::current()) {
    return ChipArray<T>(allocate_bytes(size, sizeof(T), where), size);
  }

  /// The stages of this worker's start and how long each took.
  virtual const std::vector<BootstrapStage>& bootstrap_trace() const = 0;

 protected:
  virtual ArenaPlace allocate_bytes(std::int64_t size, std::size_t element_bytes,
                                    const std::source_location& where) = 0;

 private:
  friend class CheckpointManager;
  friend class DeviceLoader;
  virtual JobCheckpoints& checkpoints() = 0;
  virtual JobLoaders& loaders() = 0;
};

/// While it lives, get_context() on this thread returns `context`: for threads that the loop
/// starts, to read rank, seed, folders or reached_preemption(). Only the loop's thread may run,
/// report or allocate.
class ContextScope {
 public:
  explicit ContextScope(TrainContext& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  TrainContext* before_;
};

/// The context of the loop on this thread. Throws not_found outside a loop.
TrainContext& get_context();
/// The mesh of this thread's loop; null without the SPMD backend. Throws not_found outside a loop.
const Mesh* mesh();
/// Throws not_found outside a loop.
bool is_spmd_backend();

}  // namespace weft
