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

/// Passed unchanged from the Trainer to the loop.
using Config = nlohmann::json;
/// A loop's report: a JSON object.
using Metrics = nlohmann::json;

/// The mesh, if workers x chips or the topology shouldn't decide it; make_mesh() has the rules.
struct SpmdConfig {
  std::vector<std::int64_t> mesh_shape{};  ///< a size per axis
  std::vector<std::string> axis_names{};
  /// The chip at each position of the mesh, row-major, as Mesh takes it. Chips are dealt to workers
  /// in order of their ids. Default: 0, 1, 2, ...
  std::vector<int> device_ids{};
  /// The mesh as chips within a host times hosts, instead of mesh_shape and axis_names. Jobs have
  /// one host in this version, so every size of `dcn` must be 1.
  std::optional<HybridMesh> hybrid{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
  std::string partitioning_mode = "auto";  ///< auto: annotations are propagated
};

struct BackendConfig {
  std::string backend = "spmd";  ///< or its aliases "xla", "xla_tpu"; "none": no mesh
  double timeout_s = 1800;       ///< for all joins together, and for any wait inside a step
  SpmdConfig spmd{};
  /// With its three files set, control connections use mutual TLS at tls.listen instead of a Unix
  /// socket.
  TlsConfig tls{};
};

/// Whether a job survives the loss of a worker: one that is killed, exits, hangs, or whose loop
/// throws an error that may be retried. An exception (peer_lost) leaves the loops of the other
/// workers. Then every loop is entered again at ctx.step(), the step that all chips have reached,
/// with the parameters and optimizer state of that step. Such a loop begins at ctx.step(), derives
/// its data and learning rate from it, keeps its state in parameters, and reports after sync().
struct FailureConfig {
  /// The number of losses that the job survives; -1: no limit. Workers that are lost before the
  /// loops have begun again count as one loss, unless one worker is lost twice.
  int max_failures = 0;
  std::string restart = "worker";  ///< "worker": the lost one; "group": all processes; "none"
  /// Seconds before the restart of a worker that is lost again without a step in between. The time
  /// doubles with each such loss, up to a minute.
  double backoff_s = 0.1;
  /// Seconds that a worker may stand still while others wait for it, or all workers without a step,
  /// run or report. Then their stacks go to their logs, and they are killed. Must exceed the time
  /// that a loop spends in its own code between steps. 0: nobody is killed, and backend.timeout_s
  /// ends waits for other workers.
  double hang_timeout_s = 0;
  /// Seconds without progress until the log says why, as `weft inspect why` does; 0: never. Unset:
  /// as the job's own steps suggest, at least 5 (docs/inspect.md, "Hung").
  std::optional<double> hang_warning_s{};
  /// 2: on one of the chips that hold the same shard, an update is written beside the old value, so
  /// that no step is lost. 1: it overwrites the old value, which takes less memory; after a loss
  /// the loops begin at the last checkpoint of a CheckpointManager, or that all workers reported
  /// (ctx.checkpoint()), or at step 0. A job that survives no loss has one version, unless its
  /// replicas are checked.
  int state_versions = 2;
  /// Whether a NaN or an infinity in a report of worker 0 ends the job, as a failure (loop_failed)
  /// that names it. No worker is started again for it. Otherwise the log warns of the first one.
  bool ends_on_nan = false;
};

class Callback;

struct RunConfig {
  std::string name{};                        ///< default: from the program's name
  std::string storage_path = "~/weft_runs";  ///< the run's folder is storage_path/name-time-id
  FailureConfig failure{};
  CheckpointConfig checkpoint{};
  ValidationConfig validation{};
  /// "never": the loop begins at step 0, and checkpoint.path must have no checkpoints. "auto": from
  /// the newest whole checkpoint in checkpoint.path, or at step 0 if there is none. Else: from this
  /// path of a checkpoint, or of a folder with checkpoints. ctx.step(), ctx.seed() and all
  /// parameters and optimizer state are those of the checkpoint; its mesh may be another.
  std::string resume = "never";
  /// State that the checkpoint lacks, as of a parameter that was added or of another optimizer, is
  /// made by the loop, with a warning that names it, rather than an error; so is optimizer state
  /// that it has with another type. ctx.step() is the checkpoint's all the same.
  bool resume_partial = false;
  std::vector<std::shared_ptr<Callback>> callbacks{};
  std::uint64_t seed = 0;
  /// Seconds from SIGTERM (preemption) to the end of all processes. The loops reach one common
  /// step, where ctx.reached_preemption() tells them to save a checkpoint and return. If no loop
  /// asks, all are left at the step after it. 0: SIGTERM cancels at once, as SIGINT and SIGHUP do.
  /// Kubernetes and Slurm kill after 30 s.
  double grace_s = 25;
  /// Seconds for which the parameters and optimizer state of a job that doesn't end well stay in
  /// /dev/shm, so that `weft rescue` can make a checkpoint of its last step. They count from when
  /// its end is noticed: by the trainer, by the user's next job, or by `weft sweep`. More than 0
  /// takes the memory of two versions (FailureConfig::state_versions). 0: nothing is left by a job
  /// that ends; what a killed trainer leaves with max_failures can be rescued until the next job.
  double keep_for_rescue_s = 0;
  /// Every so many steps, the chips that hold the same parameters and optimizer state compare them
  /// bit for bit; a difference ends the job. 0: never.
  int check_replicas_every = 0;
  /// "none", or "eager": to find a mistake, each op runs when it is recorded. What it throws comes
  /// out of the line that recorded it, and a tensor can be printed anywhere. The job runs on one
  /// chip, whose mesh has the axes that were asked for. WEFT_EAGER=1 does so without a change of
  /// the program.
  std::string debug = "none";
  /// Whether SIGTERM preempts the running job, and SIGINT and SIGHUP cancel it. Default: true in
  /// fit(), false in start(). false leaves all signals to the program.
  std::optional<bool> handle_signals{};
  /// Whether the program's own handlers of these signals are called too, at once. Result::signal
  /// has the signal.
  bool chain_signals = true;
  /// Receives each line that a worker process prints, without its newline, instead of this
  /// program's streams. Runs on the thread of the callbacks; its exceptions act as theirs do.
  std::function<void(int worker, bool err, std::string_view line)> output{};
  /// Receives each report of each worker, those of worker 0 too; otherwise as `output`. Steps that
  /// are made again after a loss bring none twice. The last reports of a worker that is killed may
  /// be lost, but for those of worker 0.
  std::function<void(int worker, const Metrics&)> on_worker_report{};
};

struct TrainerOptions {
  Config loop_config{};  ///< null: an empty object
  ScalingConfig scaling{};
  BackendConfig backend{};
  RunConfig run{};
};

}  // namespace weft
