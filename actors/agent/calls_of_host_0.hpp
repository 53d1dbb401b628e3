#pragma once
/// Follows the fit() calls of host 0 on another host: each host makes the same calls in the same
/// order.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "actors/agent/agent_link.hpp"
#include "actors/agent/agent_run.hpp"

namespace weft {

/// The time between two tries to reach host 0.
inline constexpr std::chrono::milliseconds kTryInterval{200};

/// Connects to the trainer of the agent's call, or of a later one. `calls` then says which call
/// host 0 has reached. Throws timeout, and the errors of AgentLink::connect().
std::unique_ptr<AgentLink> connect_for(const AgentJob& job, FitCalls& calls,
                                       const AgentLink::OnEvent& on_event);

/// Returns how the agent's call has ended on host 0, which has reached a later one. Throws
/// mesh_mismatch if host 0 doesn't know it.
std::string outcome_on_host_0(const FitCalls& calls, const AgentJob& job);

/// Joins the job. If another process has the place, waits until the trainer must have noticed that
/// this process is lost, or else throws mesh_mismatch.
HostWelcome join_job(AgentLink& link, const HostJoin& join, std::chrono::milliseconds timeout);

/// Waits until host 0's process begins another job, and returns how it has ended the agent's one;
/// nothing if the process has ended. Between jobs host 0 accepts no connection, but its kernel
/// keeps this one until the next job or the end of the process.
std::optional<std::string> wait_for_next_job(const AgentJob& job, const std::string& process);

}  // namespace weft
