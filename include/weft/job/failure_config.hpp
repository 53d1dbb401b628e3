#pragma once
/// FailureConfig: says whether and how a job survives losses of workers (Ray Train's
/// FailureConfig).

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
/// Returns the Restart of this name. Throws invalid_argument, with the closest name, for other
/// text.
Restart parse_restart(std::string_view text);

/// Says how a job survives the loss of a worker. A worker is lost if it is killed, exits or hangs,
/// or if its loop throws an error that may be retried. The loops of the other workers get an
/// exception (peer_lost). Then every loop begins again at ctx.step(), the step that all chips have
/// reached, with the parameters and optimizer state of that step. A loop that should survive begins
/// at ctx.step(), derives its data and learning rate from it, keeps its state in parameters, and
/// reports after sync().
struct FailureConfig {
  /// The number of losses that the job survives; -1 means no limit. Further losses before the loops
  /// have begun again count as the same loss, unless a worker is lost twice.
  int max_failures = 0;
  Choice<Restart> restart = Restart::worker;
  /// Seconds to wait before the restart of a worker that was lost twice without ending a step in
  /// between. The time doubles with each further loss of this kind, up to a minute.
  double backoff_s = 0.1;
  /// Seconds for which a worker may keep other workers waiting, or for which all workers may end no
  /// step, start no program and send no report. After that, the stacks of the hanging workers are
  /// written to their logs, and these workers are killed. The time must exceed what a loop spends
  /// in its own code between steps. 0: no worker is killed, and backend.timeout_s ends waits for
  /// other workers.
  double hang_timeout_s = 0;
  /// Seconds of silence after which another host counts as lost, at least 3. Hosts send a sign of
  /// life each second.
  double host_timeout_s = 5;
  /// Seconds without progress after which the log says why, as `weft inspect why` does; 0: never.
  /// If unset, it follows from the job's own steps and is at least 5 (docs/inspect.md, "Hung").
  std::optional<double> hang_warning_s{};
  /// The number of versions of the state. 2: one of the chips that hold the same shard keeps the
  /// old value beside the new one, so that no step is lost. 1: an update overwrites the old value.
  /// After a loss, the loops then begin at the last checkpoint that a CheckpointManager saved or
  /// all workers reported (ctx.checkpoint()), or at step 0. One version takes less memory. A job
  /// with max_failures = 0 keeps one version, unless check_replicas_every or keep_for_rescue_s is
  /// set.
  int state_versions = 2;
  /// If true, a NaN or an infinity in a report of worker 0 ends the job with a failure
  /// (loop_failed) that names the metric, and no worker is restarted. If false, the log warns of
  /// the first such value.
  bool ends_on_nan = false;
};

}  // namespace weft
