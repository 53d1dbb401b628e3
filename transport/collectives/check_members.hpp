#pragma once
/// check_members(): before a loop begins, each chip meets its peers along every axis of the mesh.

#include <span>

#include <weft/sharding/mesh.hpp>

#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Along each axis that doesn't cross hosts, every chip meets its peers in a barrier, in which all
/// must agree on the mesh and on their place in it. All processes of the job call it once per
/// generation, before any other collective, each with the positions of its chips. Afterwards the
/// chips' collectives count from 1. Throws program_divergence if a peer has another mesh or
/// considers itself a chip of another group. Throws peer_lost and timeout, as Communicator::wait()
/// does.
void check_members(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                   const Board& board, WaitPolicy policy);

}  // namespace weft
