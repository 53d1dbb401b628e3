#pragma once
/// Passes the state of a job from a host that has it to a host that joined in place of a lost one.
///
/// A chip's twin is the chip with the same number on another host. Each chip of the donor's host
/// sends this message to its twin, over the wire between them:
///
///   message = bytes of the table (8 bytes), state table, shard{tensors of the table}
///
/// The table is that of the sender's worker. A shard has the same offset in both chips' arenas.

#include <vector>

#include <weft/sharding/mesh.hpp>

#include "actors/protocol/protocol.hpp"
#include "actors/worker/host_wires.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/kept_state.hpp"

namespace weft {

/// Sends or receives the state of `start.step`, if `start.donors` names this worker's host, for the
/// worker's chips at `positions`. Returns where the worker then finds the state. Must be called
/// before the chips use the wires. Throws corrupt if a received table isn't valid, peer_lost if the
/// job is aborted meanwhile, no_space and timeout.
StateSource pass_state(const Start& start, const Assignment& assignment, const Mesh& mesh,
                       const std::vector<int>& positions, JobMemory& memory, const HostWires& wires,
                       const Recorder& recorder);

}  // namespace weft
