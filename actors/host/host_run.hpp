#pragma once
/// HostRun: owns the resources of a running job on one host.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/data/run_folder.hpp"
#include "actors/host/box_timekeeper.hpp"
#include "actors/host/hang_reporter.hpp"
#include "actors/host/job_place.hpp"
#include "actors/host/local_host.hpp"
#include "actors/launch/worker_command.hpp"
#include "actors/launch/worker_processes.hpp"
#include "actors/process/log.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// A job of host 0 that another host has joined.
struct JoinedJob {
  JobPart part;
  std::string run_dir;
};

/// The parts of a job on this host, which are destroyed in the reverse order of their declarations:
/// the job's processes end before the resources that they use are removed. Only one thread may use
/// the object. That thread logs to the job's log during the object's lifetime.
struct HostRun {
  using Lines = std::function<void(int worker, bool err, std::string_view line)>;

  /// `spec` must outlive the object. `lines` receives the output of the workers; if it is empty,
  /// the output goes to the streams of this program. `joined` is set on every host but host 0.
  /// Throws no_space or io if a part can't be made, and invalid_argument for an invalid WEFT_TRACE.
  HostRun(const JobSpec& spec, Lines lines, bool logs_to_console,
          const std::optional<JoinedJob>& joined = {});
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;

  /// Starts a process for the worker and returns its pid. The trainer listens at `address`. Throws
  /// io.
  int start_process(int worker, const WorkerCommand& command, const LoopIdentity& loop,
                    const std::string& address);

  const JobSpec& spec;
  JobPlace place;
  RunFolder folder;
  Board board;
  BlackBoxWriter box;
  BoxTimekeeper times{box};
  HangReporter hangs;
  JobMemory memory;
  LocalHost link{memory, board, spec};  ///< the trainer reaches this host through it
  const std::shared_ptr<JobLog> log;
  const LogScope log_scope;
  WorkerProcesses processes;
};

}  // namespace weft
