#pragma once
/// Runs a job's part on another host than the trainer's.

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
};

/// Joins the job of host 0, runs its part on this host until it has ended, and removes all that it
/// has made here. Returns the exit code for this process: 0 if the job ended well, else 1. Throws
/// timeout, mesh_mismatch, no_space or io if this host can't take part.
int run_agent(const AgentJob& job);

}  // namespace weft
