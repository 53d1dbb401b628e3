#include "actors/keeper/loop_workers.hpp"

#include <algorithm>

namespace weft {

std::optional<LoopWorker> LoopWorkers::left(PeerId peer) {
  const auto found =
      std::ranges::find(peers_, peer, [](const auto& entry) { return entry.second; });
  if (found == peers_.end()) return std::nullopt;
  const LoopWorker worker = found->first;
  peers_.erase(found);
  return worker;
}

std::optional<PeerId> LoopWorkers::peer(LoopWorker worker) const {
  const auto found = peers_.find(worker);
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace weft
