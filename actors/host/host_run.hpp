#pragma once
/// HostRun: what a running job has on one host.

#include <functional>
#include <memory>
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

/// The parts of a job on this host; they are destroyed in the reverse of this order. Used by one
/// thread, whose log is that of the job for the lifetime of the run. Its processes are killed, and
/// have ended, before anything that they use is removed.
struct HostRun {
  using Lines = std::function<void(int worker, bool err, std::string_view line)>;

  /// `spec` must outlive it. `lines` takes the output of the workers; if it is empty, the streams
  /// of this program take it. Throws no_space or io, as the parts do, and invalid_argument for a
  /// WEFT_TRACE that is none.
  HostRun(const JobSpec& spec, Lines lines, bool logs_to_console);
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;

  /// Starts a process for the worker, whose trainer listens at `address`. Returns its pid. Throws
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
  LocalHost link{memory, board};  ///< by which the trainer reaches this host
  const std::shared_ptr<JobLog> log;
  const LogScope log_scope;
  WorkerProcesses processes;
};

}  // namespace weft
