#pragma once
/// check_members(): makes each chip meet its peers along every axis of the mesh before a loop
/// begins.

#include <span>

#include <weft/sharding/mesh.hpp>

#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"

namespace weft {

/// Makes every chip meet its peers in a barrier along each axis that doesn't cross hosts, in which
/// all chips must agree on the mesh and on their places in it. Each process of the job calls this
/// once per generation, before any other collective, with the positions of its chips. Afterwards
/// the numbers of the chips' collectives start again at 1. Throws program_divergence if a peer has
/// another mesh or another group, and peer_lost and timeout as Communicator::wait() does.
void check_members(JobMemory& memory, const Mesh& mesh, std::span<const int> positions,
                   const Board& board, WaitPolicy policy);

}  // namespace weft
