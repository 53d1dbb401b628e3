#pragma once
/// The options of a job: Ray Train's ScalingConfig, TorchConfig and RunConfig in weft's terms.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/checkpoint_config.hpp>
#include <weft/hybrid_mesh.hpp>
#include <weft/scaling_config.hpp>
#include <weft/tls.hpp>
#include <weft/validation_config.hpp>

namespace weft {

/// The value that the Trainer passes unchanged to the loop.
using Config = nlohmann::json;
/// A loop's report: a JSON object.
using Metrics = nlohmann::json;

/// The mesh, if the workers, chips or topology shouldn't decide it; make_mesh() has the rules.
struct SpmdConfig {
  std::vector<std::int64_t> mesh_shape{};  ///< a size per axis
  std::vector<std::string> axis_names{};
  /// The chip at each position of the mesh, row-major, as Mesh takes it. Chips are given to workers
  /// in order of their ids. Default: 0, 1, 2, ...
  std::vector<int> device_ids{};
  /// The mesh as chips within a host times hosts, instead of mesh_shape and axis_names. In this
  /// version jobs have one host, so every size of `dcn` must be 1.
  std::optional<HybridMesh> hybrid{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
  std::string partitioning_mode = "auto";  ///< "auto" propagates annotations
};

struct BackendConfig {
  std::string backend = "spmd";  ///< or its aliases "xla", "xla_tpu"; "none" makes no mesh
  double timeout_s = 1800;       ///< seconds for all joins, and for any wait inside a step
  SpmdConfig spmd{};
  /// If its three files are set, control connections use mutual TLS at tls.listen instead of a Unix
  /// socket.
  TlsConfig tls{};
};

/// How a job survives the loss of a worker: a worker that is killed, exits or hangs, or whose loop
/// throws an error that may be retried. The loops of the other workers get an exception
/// (peer_lost). Then every loop begins again at ctx.step(), the step that all chips have reached,
/// with the parameters and optimizer state of that step. A loop that should survive begins at
/// ctx.step(), derives its data and learning rate from it, keeps its state in parameters, and
/// reports after sync().
struct FailureConfig {
  /// The number of losses that the job survives; -1 means no limit. Workers that are lost before
  /// the loops have begun again count as one loss, unless one worker is lost twice.
  int max_failures = 0;
  /// Restarts "worker": the lost one; "group": all processes; or "none".
  std::string restart = "worker";
  /// Seconds before the restart of a worker that is lost again without a step in between. The time
  /// doubles with each such loss, up to a minute.
  double backoff_s = 0.1;
  /// Seconds that a worker may block other workers that wait for it, or that all workers may pass
  /// without a step, run or report. After that their stacks are written to their logs, and they are
  /// killed. It must exceed the time that a loop spends in its own code between steps. 0: no worker
  /// is killed, and backend.timeout_s ends waits for other workers.
  double hang_timeout_s = 0;
  /// Seconds without progress after which the log says why, as `weft inspect why` does; 0: never.
  /// If unset, it follows from the job's own steps and is at least 5 (docs/inspect.md, "Hung").
  std::optional<double> hang_warning_s{};
  /// The number of versions of the state. 2: on one of the chips that hold the same shard, an
  /// update is written beside the old value, so that no step is lost. 1: an update overwrites the
  /// old value, which takes less memory; after a loss the loops begin at the last checkpoint of a
  /// CheckpointManager, or that all workers reported (ctx.checkpoint()), or at step 0. A job that
  /// survives no loss has one version, unless its replicas are checked.
  int state_versions = 2;
  /// If true, a NaN or an infinity in a report of worker 0 ends the job with a failure
  /// (loop_failed) that names it, and no worker is started again. If false, the log warns of the
  /// first one.
  bool ends_on_nan = false;
};

class Callback;

struct RunConfig {
  std::string name{};                        ///< default: from the program's name
  std::string storage_path = "~/weft_runs";  ///< the run's folder is storage_path/name-time-id
  FailureConfig failure{};
  CheckpointConfig checkpoint{};
  ValidationConfig validation{};
  /// Where the loop begins. "never": at step 0; checkpoint.path must then have no checkpoints.
  /// "auto": at the newest whole checkpoint in checkpoint.path, or at step 0 if there is none. Any
  /// other value is the path of a checkpoint, or of a folder with checkpoints, to begin from.
  /// ctx.step(), ctx.seed() and all parameters and optimizer state are then those of the
  /// checkpoint; its mesh may differ.
  std::string resume = "never";
  /// If true, state that the checkpoint lacks, such as that of a new parameter or another
  /// optimizer, is made by the loop, and a warning names it. The same holds for optimizer state
  /// that the checkpoint has with another type. If false, both are errors. ctx.step() is the
  /// checkpoint's in any case.
  bool resume_partial = false;
  std::vector<std::shared_ptr<Callback>> callbacks{};
  std::uint64_t seed = 0;
  /// Seconds from SIGTERM (preemption) to the end of all processes. The loops reach one common
  /// step, at which ctx.reached_preemption() tells them to save a checkpoint and return. If no loop
  /// calls it, all loops are stopped at the next step. 0: SIGTERM cancels at once, as SIGINT and
  /// SIGHUP do. Kubernetes and Slurm kill after 30 s.
  double grace_s = 25;
  /// Seconds for which the parameters and optimizer state of a job that fails stay in /dev/shm, so
  /// that `weft rescue` can make a checkpoint of its last step. They count from the moment when the
  /// trainer, the user's next job, or `weft sweep` notices the end. More than 0 takes the memory of
  /// two versions (FailureConfig::state_versions). 0: a job that ends leaves nothing; with
  /// max_failures, the state that a killed trainer leaves can be rescued until the next job.
  double keep_for_rescue_s = 0;
  /// The interval in steps at which chips that hold the same parameters and optimizer state compare
  /// them bit for bit; a difference ends the job. 0: never.
  int check_replicas_every = 0;
  /// "none" or "eager". "eager" helps to find a mistake: each op runs when it is recorded, its
  /// exception is thrown from that line, and a tensor can be printed anywhere. The job runs on one
  /// chip, whose mesh has the requested axes. WEFT_EAGER=1 does the same without a change of the
  /// program.
  std::string debug = "none";
  /// Whether SIGTERM preempts the running job, and SIGINT and SIGHUP cancel it. Default: true in
  /// fit(), false in start(). false leaves all signals to the program.
  std::optional<bool> handle_signals{};
  /// Whether the program's own handlers of these signals are also called, at once. Result::signal
  /// has the signal.
  bool chain_signals = true;
  /// Receives each line that a worker process prints, without its newline, instead of this
  /// program's streams. It runs on the thread of the callbacks; its exceptions act like those of
  /// callbacks.
  std::function<void(int worker, bool err, std::string_view line)> output{};
  /// Receives each report of each worker, including worker 0; otherwise works like `output`. Steps
  /// that run again after a loss report nothing twice. The last reports of a killed worker may be
  /// lost, except those of worker 0.
  std::function<void(int worker, const Metrics&)> on_worker_report{};
};

struct TrainerOptions {
  Config loop_config{};  ///< null means an empty object
  ScalingConfig scaling{};
  BackendConfig backend{};
  RunConfig run{};
};

}  // namespace weft
