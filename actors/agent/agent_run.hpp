#pragma once
/// Runs the part of a job on a host other than the trainer's.

#include <optional>
#include <string>

#include "actors/launch/worker_command.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Describes the job to an agent. All of it comes from the same fit() call as on host 0.
struct AgentJob {
  const JobSpec& spec;
  const LoopIdentity& loop;
  const WorkerCommand& command;
  bool handles_signals = true;
  bool chains_signals = true;
  bool logs_to_console = true;
  int fit_number = 1;  ///< number of the fit() call in this process, from 1
};

/// Describes how an agent's fit() call ended.
struct AgentEnd {
  int code = 0;  ///< exit code of this process: 0 if the job ended well, else 1
  /// The outcome of the same call on host 0 (see result_of()), if host 0 has begun a later call.
  /// Absent if this process has to end.
  std::optional<std::string> outcome{};
};

/// Joins the job of host 0, runs its part on this host until the job has ended, and removes all
/// that it has made on this host. Then waits until host 0's process has ended or begins another
/// job. If host 0 has already begun a later call, returns at once. Throws timeout, mesh_mismatch,
/// no_space or io if this host can't take part.
AgentEnd run_agent(const AgentJob& job);

}  // namespace weft
