#pragma once
/// FailureConfig: which losses a job survives, and how (Ray Train's FailureConfig).

#include <cstdint>
#include <optional>
#include <string_view>

#include <weft/job/choice.hpp>

namespace weft {

/// The processes that are started again after a worker is lost.
enum class Restart : std::uint8_t {
  worker,  ///< the process of the lost worker; the other workers keep their processes
  group,   ///< the processes of all workers
  none,    ///< no process; the job ends
};
/// Returns "worker", "group" or "none".
std::string_view to_string(Restart restart) noexcept;
/// Reads one of these names. Throws invalid_argument, with the closest name, for other text.
Restart parse_restart(std::string_view text);

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
  Choice<Restart> restart = Restart::worker;
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

}  // namespace weft
