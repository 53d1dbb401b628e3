#pragma once
/// Runs a job's part on another host than the trainer's.

#include <optional>
#include <string>

#include "actors/launch/worker_command.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// The facts about the job in this process, from the same fit() call as on host 0.
struct AgentJob {
  const JobSpec& spec;
  const LoopIdentity& loop;
  const WorkerCommand& command;
  bool handles_signals = true;
  bool chains_signals = true;
  bool logs_to_console = true;
  int fit_number = 1;  ///< of the fit() call of this process, from 1
};

/// The end of an agent's fit() call.
struct AgentEnd {
  int code = 0;  ///< for this process: 0 if the job ended well, else 1
  /// How the call ended on host 0, which has reached a later one (result_of()). Nothing: this
  /// process is to end.
  std::optional<std::string> outcome{};
};

/// Joins the job of host 0, runs its part on this host until it has ended, and removes all that it
/// has made here. Then waits until host 0's process has ended or begins another job. If host 0 has
/// reached a later call already, returns at once. Throws timeout, mesh_mismatch, no_space or io if
/// this host can't take part.
AgentEnd run_agent(const AgentJob& job);

}  // namespace weft
