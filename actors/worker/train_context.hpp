#pragma once
/// TrainContext: what a training loop knows about its place in the job (ray.train.get_context()).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weft/actors/trainer/config.hpp>
#include <weft/spmd/mesh/mesh.hpp>

namespace weft {

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
  /// Sends metrics (a JSON object, up to 1 MiB; NaN arrives as NaN, in result.json it is null) to
  /// the trainer, after copying a checkpoint's folder into the run's (the files of all workers into
  /// one). Worker 0's reports make the history; all workers report a checkpoint the same number of
  /// times. Doesn't wait for the trainer. Throws invalid_argument, not_found or io.
  virtual void report(const Metrics& metrics, const std::optional<Checkpoint>& checkpoint = {}) = 0;
  /// The stages of this worker's start and how long each took.
  virtual const std::vector<BootstrapStage>& bootstrap_trace() const = 0;
};

/// The context of the loop that this thread runs. Throws not_found outside a loop.
TrainContext& get_context();
/// The mesh of this thread's loop; null without the SPMD backend. Throws not_found outside a loop.
const Mesh* mesh();
/// Throws not_found outside a loop.
bool is_spmd_backend();

}  // namespace weft
