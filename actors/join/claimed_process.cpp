#include "actors/join/claimed_process.hpp"

#include <utility>

#include "transport/lanes/peer_memory.hpp"

namespace weft {

std::shared_ptr<detail::ActorProcess> join_unasked(const std::string& system,
                                                   const ActorProcessOptions& options,
                                                   detail::ActorProcess::OnNews on_news) {
  PeerTable table = PeerTable::open(system);
  PeerClaim claim = table.claim();
  std::shared_ptr<detail::ActorProcess> process;
  try {
    process = detail::ActorProcess::join(PeerTable::open(system), ActorTable::open(system),
                                         claim.peer, options, std::move(on_news));
  } catch (...) {
    PeerMemory::remove(system, claim.peer);
    table.give_back(claim.peer);  // while this process still has the lock
    throw;
  }
  process->keep(std::move(claim.life));
  return process;
}

}  // namespace weft
