#pragma once
/// Runs the part of an actor system on a host other than the keeper's.

#include <weft/actor/actor_options.hpp>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// Joins the system of host 0, runs the processes that host 0 places on this host until the system
/// has ended, and removes all that it has made on this host. Returns the exit code for this
/// process: 0 if the system has ended, 1 if host 0 is lost. Throws timeout, io, no_space or
/// invalid_argument if this host can't take part.
int run_actors_agent(const SystemOptions& options, const HostPlace& place);

}  // namespace weft
