#pragma once
/// Finds the place of a process that calls fit() among the hosts of its job.

#include <optional>

#include "actors/launch/foreign_launch.hpp"
#include "actors/protocol/host_place.hpp"

namespace weft {

/// Returns the place from WEFT_HOSTS, WEFT_HOST_INDEX, WEFT_TRAINER, WEFT_SECRET_FILE, WEFT_JOB and
/// WEFT_RENDEZVOUS, and where they are silent from the launcher or from JOB_COMPLETION_INDEX
/// (Kubernetes), MASTER_ADDR and MASTER_PORT. Returns a place with one host if nothing names
/// several. `meeting` is set if the hosts have to find each other by a file; then `trainer` and
/// `secret` are empty. Throws invalid_argument, with both variables and both values, if two
/// variables contradict each other, and for malformed or incomplete variables; io or
/// invalid_argument for the file of the secret, which only its owner may read.
HostPlace start_place(const std::optional<ForeignLaunch>& launch, const VariableLookup& variable);

/// An actor system of this program runs on all of its hosts, if `are_given`. The program's jobs
/// then run on host 0 alone.
void give_hosts_to_actors(bool are_given);
bool have_actors_the_hosts();

}  // namespace weft
