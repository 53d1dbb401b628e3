#pragma once
/// Lets an agent follow host 0 from one fit() call to the next: each host makes the same calls in
/// the same order.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "actors/agent/agent_link.hpp"
#include "actors/agent/agent_run.hpp"

namespace weft {

/// The first interval of the attempts to reach host 0.
inline constexpr std::chrono::milliseconds kTryInterval{200};

/// Connects to the trainer of the agent's fit() call, or of a later one. Sets `calls`, which says
/// which call host 0 has reached. Throws timeout, peer_lost if host 0 has ended since an earlier
/// call, and the errors of AgentLink::connect().
std::unique_ptr<AgentLink> connect_for(const AgentJob& job, FitCalls& calls,
                                       const AgentLink::OnEvent& on_event);

/// Returns how the agent's fit() call ended on host 0, which has begun a later one. Throws
/// mesh_mismatch if host 0 doesn't know that.
std::string outcome_on_host_0(const FitCalls& calls, const AgentJob& job);

/// Joins the job. If another process has this host's place, waits until the trainer must have
/// noticed a loss of that process. Throws mesh_mismatch if the place is still taken then.
HostWelcome join_job(AgentLink& link, const HostJoin& join, std::chrono::milliseconds timeout);

/// Waits until host 0's process begins another job. Returns how the agent's job ended on host 0;
/// nothing if host 0's process has ended. Between jobs, host 0 accepts no connection, but its
/// kernel keeps the agent's one until the next job begins or the process ends. Doesn't end while
/// another program accepts connections at host 0's address and sends nothing.
std::optional<std::string> wait_for_next_job(const AgentJob& job, const std::string& process);

}  // namespace weft
