#include "actors/join/claimed_process.hpp"

#include <utility>

#include "transport/lanes/peer_memory.hpp"

namespace weft {

std::shared_ptr<detail::ActorProcess> join_by_claim(const std::string& system,
                                                    const ActorProcessOptions& options,
                                                    detail::ActorProcess::OnNews on_news,
                                                    std::uint64_t job, std::uint32_t worker) {
  PeerTable table = PeerTable::open(system);
  PeerClaim claim = table.claim();
  std::shared_ptr<detail::ActorProcess> process;
  try {
    process = detail::ActorProcess::join(PeerTable::open(system), ActorTable::open(system),
                                         claim.peer, options, std::move(on_news));
  } catch (...) {
    PeerMemory::remove(system, claim.peer);
    table.give_back(claim.peer);  // must happen while this process has the lock
    throw;
  }
  process->keep(std::move(claim.life));
  try {
    process->report_joined(job, worker);
  } catch (...) {  // the system has ended meanwhile, so it won't remove this memory
    PeerMemory::remove(system, claim.peer);
    throw;
  }
  return process;
}

}  // namespace weft
