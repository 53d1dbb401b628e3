#include <algorithm>
#include <memory>
#include <utility>

#include "actors/relay/host_relay.hpp"

namespace weft {

void HostRelay::add_stand_in(const PeerFacts& facts, std::size_t heap_bytes) {
  auto made = std::make_shared<StandIn>(
      *peers_, *actors_, facts, heap_bytes,
      [this, host = static_cast<int>(facts.host)](std::unique_ptr<HostFrame> frame) {
        send_frame(host, std::move(frame));
      });
  const std::lock_guard lock(mutex_);
  stand_ins_.insert_or_assign(facts.peer.slot, std::move(made));
}

std::shared_ptr<StandIn> HostRelay::stand_in(PeerId peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = stand_ins_.find(peer.slot);
  if (found == stand_ins_.end() || found->second->peer() != peer) return nullptr;
  return found->second;
}

void HostRelay::end_stand_in(PeerId peer) {
  const std::shared_ptr<StandIn> ended = stand_in(peer);
  if (ended == nullptr) return;
  ended->stop();
  const std::lock_guard lock(mutex_);
  stand_ins_.erase(peer.slot);
  ending_.push_back(ended);
}

bool HostRelay::has_forgotten(PeerId peer) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find(ending_, peer, [](const auto& each) { return each->peer(); });
  if (found == ending_.end()) return true;
  // Frames that are being sent or received use its memory.
  if (found->use_count() > 1 || (*found)->node().use_count() > 1) return false;
  ending_.erase(found);
  return true;
}

}  // namespace weft
