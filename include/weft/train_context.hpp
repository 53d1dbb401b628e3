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

// Preempted: what ends a loop that doesn't ask whether to end.

/// Thrown by the sync after the step at which TrainContext::reached_preemption() became true, in
/// every worker alike, where no loop of the job has ever asked it. The loop is left; that is no
/// failure of its own.
class Preempted : public Error {
 public:
  Preempted()
      : Error(Errc::cancelled,
              "the job is to end (SIGTERM), and this loop has not asked ctx.reached_preemption()") {
  }
};

/// A stage of the start-up, for bootstrap_trace().
struct BootstrapStage {
  std::string name;
  double milliseconds = 0;
};

/// One per worker; valid while its loop runs, on the loop's thread unless said otherwise.
class TrainContext {
 public:
  virtual ~TrainContext() = default;

  /// Null where the job has no SPMD backend.
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

  /// Steps (syncs) ended so far.
  virtual std::uint64_t step() const = 0;
  /// What to load before the loop begins at step(): set where a worker was lost and the state of
  /// the steps before is not kept (FailureConfig::state_versions = 1).
  virtual const std::optional<Checkpoint>& checkpoint() const = 0;
  /// True once the job has been asked to end (SIGTERM to the program, `weft launch` or a worker),
  /// from the same step on in every worker: save a checkpoint, report() it, and return, within
  /// RunConfig::grace_s of the signal. All workers must ask at the same steps. Where none of the
  /// job's loops has ever asked, the sync after the first such step throws Preempted.
  virtual bool reached_preemption() const = 0;
  /// Sends metrics (a JSON object, up to 1 MiB; NaN arrives as NaN, in result.json it is null) to
  /// the trainer, after copying a checkpoint's folder into the run's (the files of all workers into
  /// one). Worker 0's reports make the history; all workers report a checkpoint the same number of
  /// times. Doesn't wait for the trainer, but runs the step closures of the steps before: what they
  /// report comes first. Throws invalid_argument, not_found or io.
  virtual void report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint = {},
                      std::source_location where = std::source_location::current()) = 0;

  /// For computations that aren't traced: runs `body` for every chip of this worker, on the chip's
  /// own thread, after all synced work, and returns when all have ended. All workers must call it,
  /// at the same line. An exception of `body` fails the job. `body` has no tensors and no context;
  /// it stores its results in variables of the loop. Throws unavailable where the job has no mesh,
  /// invalid_argument off the loop's thread.
  virtual void on_each_chip(const std::function<void(Chip&)>& body,
                            std::source_location where = std::source_location::current()) = 0;
  /// `size` elements on every chip, in shared memory, so that on_each_chip()'s collectives don't
  /// copy; arbitrary at first. All workers must allocate and free the same arrays in the same
  /// order. The last array's memory is freed; another's is kept for arrays of its size. On the
  /// loop's thread. Throws invalid_argument, no_space.
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
};

/// While it lives, get_context() on this thread is `context`: for threads that the loop starts, to
/// ask for rank, seed, folders or reached_preemption(). What runs, reports or allocates stays
/// with the loop's own thread.
class ContextScope {
 public:
  explicit ContextScope(TrainContext& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  TrainContext* before_;
};

/// The context of the loop that this thread runs. Throws not_found outside a loop.
TrainContext& get_context();
/// The mesh of this thread's loop; null without the SPMD backend. Throws not_found outside a loop.
const Mesh* mesh();
/// Throws not_found outside a loop.
bool is_spmd_backend();

}  // namespace weft
