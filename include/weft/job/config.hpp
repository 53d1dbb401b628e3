#pragma once
/// RunConfig and TrainerOptions: the options of a job, with the names of Ray Train.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/job/backend_config.hpp>
#include <weft/job/checkpoint_config.hpp>
#include <weft/job/choice.hpp>
#include <weft/job/failure_config.hpp>
#include <weft/job/scaling_config.hpp>
#include <weft/job/validation_config.hpp>

namespace weft {

/// The value that the Trainer passes unchanged to the loop.
using Config = nlohmann::json;
/// A loop's report: a JSON object.
using Metrics = nlohmann::json;

class ActorSystem;
class Callback;

/// Says when the ops of a loop run.
enum class DebugMode : std::uint8_t {
  none,   ///< at sync(), as compiled programs
  eager,  ///< each op at once, when it is recorded
};
/// Returns "none" or "eager".
std::string_view to_string(DebugMode mode) noexcept;
/// Returns the DebugMode of this name. Throws invalid_argument, with the closest name, for other
/// text.
DebugMode parse_debug_mode(std::string_view text);

struct RunConfig {
  std::string name{};                        ///< default: taken from the program's name
  std::string storage_path = "~/weft_runs";  ///< the run's folder is storage_path/name-time-id
  FailureConfig failure{};
  CheckpointConfig checkpoint{};
  ValidationConfig validation{};
  /// The step at which the loop begins. "never": at step 0; checkpoint.path must then have no
  /// checkpoints. "auto": at the newest complete checkpoint in checkpoint.path, or at step 0 if
  /// there is none. Any other value is the path of a checkpoint, or of a folder, whose newest
  /// checkpoint is taken. ctx.step(), ctx.seed() and all parameters and optimizer state then come
  /// from the checkpoint; its mesh may differ.
  std::string resume = "never";
  /// If the checkpoint lacks some state, such as that of a new parameter or another optimizer, or
  /// has optimizer state of another type: true keeps the state that the loop itself makes, and a
  /// warning names it; false makes this an error. ctx.step() is the checkpoint's in any case.
  bool resume_partial = false;
  std::vector<std::shared_ptr<Callback>> callbacks{};
  std::uint64_t seed = 0;
  /// Seconds from SIGTERM (preemption) to the end of all processes. The loops reach one common
  /// step, at which ctx.reached_preemption() tells them to save a checkpoint and return. If no loop
  /// calls that function, all loops are stopped at the next step. 0: SIGTERM cancels the job at
  /// once, as SIGINT and SIGHUP do. Kubernetes and Slurm kill processes after 30 s.
  double grace_s = 25;
  /// Seconds for which the parameters and optimizer state of a failed job stay in /dev/shm. Then
  /// `weft rescue` can make a checkpoint of the job's last step. The seconds count from the moment
  /// when the trainer, the user's next job, or `weft sweep` notices the end. A value above 0 takes
  /// memory for two versions of the state (FailureConfig::state_versions). 0: a job that ends
  /// leaves no state. But if max_failures is set and the trainer itself was killed, its state can
  /// be rescued until the next job.
  double keep_for_rescue_s = 0;
  /// The interval in steps at which chips that hold the same parameters and optimizer state compare
  /// them bit for bit; a difference ends the job. 0: never.
  int check_replicas_every = 0;
  /// DebugMode::eager helps to find mistakes: each op runs when it is recorded and throws its
  /// errors from that line, and tensors can be printed anywhere. The job runs on one chip, whose
  /// mesh has the requested axes. WEFT_EAGER=1 does the same without a change of the program.
  Choice<DebugMode> debug = DebugMode::none;
  /// If true, SIGTERM preempts the running job, and SIGINT and SIGHUP cancel it. If false, all
  /// signals are left to the program. Default: true in fit(), false in start().
  std::optional<bool> handle_signals{};
  /// If true, the program's own handlers of these signals are also called, at once. With or without
  /// it, Result::signal is the signal.
  bool chain_signals = true;
  /// Receives each line that a worker process prints, without its newline, instead of this
  /// program's stdout or stderr. The function runs on the same thread as `callbacks`, and its
  /// exceptions have the same effect.
  std::function<void(int worker, bool err, std::string_view line)> output{};
  /// Receives each report of each worker, including worker 0; otherwise works like `output`. Steps
  /// that run again after the loss of a worker don't report twice. Of a killed worker other than
  /// worker 0, the last reports may be missing.
  std::function<void(int worker, const Metrics&)> on_worker_report{};
};

struct TrainerOptions {
  Config loop_config{};  ///< null means an empty object
  ScalingConfig scaling{};
  BackendConfig backend{};
  RunConfig run{};
  /// An actor system that the worker processes join, so that beside_loops() can place meshes in
  /// them. The system must exist when the job starts. A job with worker processes needs a loop with
  /// a name.
  const ActorSystem* actors = nullptr;
};

namespace detail {
/// Returns ActorSystem::id().
const std::string& id_of(const ActorSystem& system);
}  // namespace detail

}  // namespace weft
