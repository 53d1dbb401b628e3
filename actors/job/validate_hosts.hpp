#pragma once
/// Checks, for validate(), how a job is divided among its hosts.

#include <weft/job/config.hpp>
#include <weft/sharding/mesh.hpp>
#include <weft/train/trainer.hpp>

#include "actors/protocol/host_place.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Throws unavailable if the number of hosts contradicts scaling.placement_strategy.
void check_placement(const ScalingConfig& scaling, const HostPlace& place);

/// Throws mesh_mismatch, invalid_argument or unavailable if the job can't run on these hosts.
void check_hosts(const TrainerOptions& options, const HostPlace& place);

/// Sets the network, the ports and the meeting folder of a job's hosts. Throws invalid_argument.
void set_network(const BackendConfig& backend, JobSpec& spec);

/// Returns the mesh divided among the hosts as `spmd.hybrid` says. Without `spmd.hybrid`, divides
/// the first axis whose size is a multiple of `hosts`. Throws mesh_mismatch.
Mesh over_hosts(const Mesh& mesh, const SpmdConfig& spmd, int hosts);

}  // namespace weft
