#pragma once
/// Finds the place of a process that calls fit() among the hosts of its job.

#include <optional>

#include "actors/launch/foreign_launch.hpp"
#include "actors/protocol/host_place.hpp"

namespace weft {

/// Returns the place from WEFT_HOSTS, WEFT_HOST_INDEX, WEFT_TRAINER, WEFT_SECRET_FILE, WEFT_JOB and
/// WEFT_RENDEZVOUS. What these leave open is taken from the launcher, or from JOB_COMPLETION_INDEX
/// (Kubernetes), MASTER_ADDR and MASTER_PORT. Returns a place with one host if nothing names
/// several. `meeting` is set if the hosts must find each other by a file; then `trainer` and
/// `secret` are empty. Throws invalid_argument for malformed or incomplete variables, and for two
/// variables that contradict each other, naming both with their values. Throws the errors of
/// read_secret().
HostPlace start_place(const std::optional<ForeignLaunch>& launch, const VariableLookup& variable);

/// Sets whether an actor system of this program runs on all of its hosts. If it does, the program's
/// jobs run on host 0 alone.
void give_hosts_to_actors(bool are_given);
bool have_actors_the_hosts();

}  // namespace weft
