#pragma once
/// check_members(): before a loop begins, each chip meets its peers along every axis of the mesh.

#include <span>

#include <weft/mesh.hpp>

#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Along each axis that doesn't cross hosts, every chip meets its peers in a barrier in which all
/// must agree on the mesh and on their place in it. All processes of the job call it once per
/// generation, before any other collective, each with the positions of its chips; the chips'
/// collectives count from 1 after it. Throws program_divergence where a peer has another mesh or
/// takes itself for a chip of another group, and peer_lost and timeout as Communicator::wait().
void check_members(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                   const Board& board, WaitPolicy policy);

}  // namespace weft
