#pragma once
/// What a job is made of: Ray Train's ScalingConfig, TorchConfig and RunConfig in weft's terms.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/tls.hpp>

namespace weft {

/// Passed to the loop as given to the Trainer.
using Config = nlohmann::json;
/// What a loop reports: a JSON object.
using Metrics = nlohmann::json;

/// How many processes, how many chips. 0 and "" mean: not given.
struct ScalingConfig {
  int num_workers = 1;       ///< processes; 0: everything in this one
  int chips_per_worker = 0;  ///< default: what topology or mesh_shape leave for each worker, else 1
  std::string topology{};    ///< "4x4": the grid of all chips
  bool use_gpu = false;      ///< refused in this version, as is use_tpu
  bool use_tpu = false;
  std::map<std::string, double> resources_per_worker{};  ///< {"TPU": 4}: chips per worker
  std::string accelerator_type{};                        ///< "" or "CPU" in this version
  std::string placement_strategy =
      "PACK";  ///< PACK, SPREAD, STRICT_PACK, STRICT_SPREAD, over hosts
  /// The CPUs that worker processes may use; default: those of the thread that calls fit() or
  /// start().
  std::vector<int> affinity{};
  /// For a program that can't call weft::worker_main() first in its main(): the absolute path of
  /// one that does, which weft_add_worker() of weft's CMake package makes, or
  /// weft::plugin_worker(). Default: this program's executable.
  std::string worker_executable{};
};

/// The mesh, where workers x chips or the topology shouldn't decide it; make_mesh() has the rules.
struct SpmdConfig {
  std::vector<std::int64_t> mesh_shape{};  ///< a size per axis
  std::vector<std::string> axis_names{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
  std::string partitioning_mode = "auto";  ///< auto: annotations are propagated
};

struct BackendConfig {
  std::string backend = "spmd";  ///< or its aliases "xla", "xla_tpu"; "none": no mesh
  double timeout_s = 1800;       ///< for all joins together, and for any wait inside a step
  SpmdConfig spmd{};
  /// With its three files set, control goes over mutual TLS at tls.listen, not by a Unix socket.
  TlsConfig tls{};
};

/// Whether a job survives the loss of a worker: one that is killed, exits, hangs, or whose loop
/// throws an error that may be retried. The loops of the other workers are left by an exception
/// (peer_lost). Then every loop is entered again at the step that all chips have reached,
/// ctx.step(), with the parameters and optimizer state of that step. Such a loop begins at
/// ctx.step(), takes its data and learning rate from it, keeps its state in parameters, and reports
/// after sync().
struct FailureConfig {
  /// Losses that the job survives; -1: any number. Workers that are lost before the loops have
  /// begun again are one loss, unless one of them is lost twice.
  int max_failures = 0;
  std::string restart = "worker";  ///< "worker": the lost one; "group": all processes; "none"
  /// Seconds before a worker that is lost again, with no step taken in between, is started again;
  /// twice as long each time, up to a minute.
  double backoff_s = 0.1;
  /// Seconds that a worker which others wait for may stand still before it counts as lost, or all
  /// workers together, with no step, run or report: where they were goes to their logs, then they
  /// are killed. More than a loop ever spends in its own code between steps. 0: nobody is killed,
  /// and backend.timeout_s ends waits for others.
  double hang_timeout_s = 0;
  /// Without hang_timeout_s, seconds until a warning says who stands still. 0: none.
  double hang_warning_s = 60;
  /// 2: an update is written beside the old value on one of the chips that hold the same shard, so
  /// that no step is lost. 1: it overwrites the old value, for less memory; after a loss the loops
  /// begin at step 0 or the last checkpoint that all workers reported (ctx.checkpoint()). A job
  /// that survives no loss has one version, unless its replicas are checked.
  int state_versions = 2;
};

struct CheckpointConfig {
  int num_to_keep = 0;  ///< 0: all
};

/// A folder with what a loop saved.
struct Checkpoint {
  std::string path{};
};

struct JobInfo;
struct Result;

/// Told of a run's progress, in the process and on the thread that called fit(), or on the job's
/// own where start() did. What a callback throws cancels the job and comes out of fit() or
/// result().
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_start(const JobInfo&) {}
  virtual void on_report(const Metrics&) {}
  virtual void on_end(const Result&) {}
};

struct RunConfig {
  std::string name{};                        ///< default: made from the program's name
  std::string storage_path = "~/weft_runs";  ///< the run's folder is storage_path/name-time-id
  FailureConfig failure{};
  CheckpointConfig checkpoint{};
  std::vector<std::shared_ptr<Callback>> callbacks{};
  std::uint64_t seed = 0;
  /// Seconds from SIGTERM (preemption) to the end of all processes: the loops come to one step,
  /// where ctx.reached_preemption() tells them to save a checkpoint and return; where no loop asks
  /// that, they are left at the step after it. 0: SIGTERM cancels at once, as SIGINT and SIGHUP do.
  /// Kubernetes kills after 30 s, so does Slurm.
  double grace_s = 25;
  /// The interval in steps at which chips that hold the same parameters and optimizer state are
  /// compared bit for bit; a difference ends the job. 0: never.
  int check_replicas_every = 0;
  /// Whether SIGTERM preempts the job, and SIGINT and SIGHUP cancel it, while it runs. Default: in
  /// fit() yes, in start() no. false leaves all signals to the program.
  std::optional<bool> handle_signals{};
  /// Handlers that the program had for them are called too, at once; Result::signal says which
  /// came.
  bool chain_signals = true;
  /// Told of each line that a worker process prints, without its end, in place of this program's
  /// streams; on the thread of the callbacks, with the same meaning of what it throws.
  std::function<void(int worker, bool err, std::string_view line)> output{};
};

struct TrainerOptions {
  Config loop_config{};
  ScalingConfig scaling{};
  BackendConfig backend{};
  RunConfig run{};
};

}  // namespace weft
