#pragma once
/// Connects the hosts of an actor system with each other. They find host 0 as the hosts of a job
/// find the trainer, and exchange preambles as the chips of a job do, in a channel of their own.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <weft/actor/actor_options.hpp>

#include "actors/link/rendezvous.hpp"
#include "actors/protocol/host_place.hpp"
#include "transport/wires/tls_session.hpp"
#include "transport/wires/wire_door.hpp"
#include "transport/wires/wire_preamble.hpp"

namespace weft {

/// Returns the place of this process among the hosts of an actor system, with the folder, network
/// and ports of the options. Ends the process if its launcher has started several on this host and
/// this isn't the first. Throws as start_place() does.
HostPlace actors_place(const ActorHosts& options);

/// The door through which agents reach host 0. If the hosts find the address in a rendezvous file,
/// `file` owns that file and removes it at the end.
struct ActorsMeeting {
  std::unique_ptr<WireDoor> door;
  std::unique_ptr<Rendezvous> file;
};
/// Listens for the agents, as host 0. Throws io, invalid_argument.
ActorsMeeting open_meeting(HostPlace place, const ActorHosts& options, const std::string& system);

/// The connection to host 0, and the place of this host, with host 0's address and secret.
struct ReachedHost {
  HostPlace place;
  TlsSession session;
};
/// Dials host 0 until it answers. Throws timeout, io or invalid_argument.
ReachedHost reach_host_0(const HostPlace& place, const ActorHosts& options,
                         const std::string& system);

/// Listens for agents of higher numbers, at the address from which this host has reached host 0.
std::unique_ptr<WireDoor> open_agents_door(const ReachedHost& reached);
/// Connects to another agent. Throws timeout, unavailable or io.
TlsSession reach_agent(const ReachedHost& reached, const std::string& system,
                       std::uint64_t generation, int host, const std::string& address,
                       std::chrono::milliseconds timeout);

/// Returns the answer to the preamble of a host that dials host `self`. Throws invalid_argument,
/// with the reason, if the host isn't accepted.
WirePreamble answer_to_host(const WirePreamble& received, const std::string& system,
                            std::uint64_t generation, std::uint32_t self, std::uint32_t host_count,
                            const std::function<bool(int host)>& is_linked);

}  // namespace weft
