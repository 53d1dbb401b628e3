#include <algorithm>
#include <memory>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/relay/host_relay.hpp"

namespace weft {

void HostRelay::add_stand_in(const PeerFacts& facts, std::size_t heap_bytes) {
  auto made = std::make_shared<StandIn>(
      *peers_, *actors_, facts, heap_bytes,
      [this, host = static_cast<int>(facts.host)](std::unique_ptr<HostFrame> frame) {
        send_frame(host, std::move(frame));
      });
  std::shared_ptr<StandIn> before;  // destroyed unlocked, as its thread may need the lock
  const std::lock_guard lock(mutex_);
  before = std::exchange(stand_ins_[facts.peer.slot], std::move(made));
}

std::shared_ptr<StandIn> HostRelay::stand_in(PeerId peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = stand_ins_.find(peer.slot);
  if (found == stand_ins_.end() || found->second->peer() != peer) return nullptr;
  return found->second;
}

/// Returns the stand-in of a process, if it has one. Throws corrupt if it isn't of that host.
std::shared_ptr<StandIn> HostRelay::stand_in_of(int host, PeerId peer) const {
  std::shared_ptr<StandIn> found = stand_in(peer);
  if (found != nullptr && static_cast<int>(found->host()) != host) {
    fail(Errc::corrupt, "host {} sends in the name of process {} of host {}", host, peer.slot,
         found->host());
  }
  return found;
}

std::vector<std::span<std::byte>> HostRelay::allocate(int host, ArrivingFrame& frame) {
  const std::shared_ptr<StandIn> from = stand_in_of(host, frame.head.from);
  if (from == nullptr) return {};
  try {
    frame.blocks = from->allocate(frame.sizes);
  } catch (const Error& error) {
    frame.why_dropped = error.what();
    return {};
  }
  frame.keeps = from;
  std::vector<std::span<std::byte>> into;
  for (std::size_t i = 0; i < frame.blocks.size(); ++i) {
    into.push_back(from->node()->blocks().writable(frame.blocks[i]).first(frame.sizes[i]));
  }
  return into;
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
  // Frames that are being sent or received use the stand-in's memory.
  if (found->use_count() > 1 || (*found)->node().use_count() > 1) return false;
  ending_.erase(found);
  return true;
}

}  // namespace weft
