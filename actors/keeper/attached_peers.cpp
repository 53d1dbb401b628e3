#include "actors/keeper/attached_peers.hpp"

#include <algorithm>
#include <utility>

namespace weft {

bool AttachedPeers::add(PeerId peer) {
  ProcessFd process(table_->pid(peer.slot));
  // The lock says whether the number still is that of the process, and not of a later one.
  if (process.fd() < 0 || !table_->is_claimed(peer.slot)) return false;
  peers_.insert_or_assign(peer.slot, Attached{.peer = peer, .process = std::move(process)});
  return true;
}

void AttachedPeers::expect_end(PeerId peer) {
  const auto found = peers_.find(peer.slot);
  if (found != peers_.end() && found->second.peer == peer) found->second.expects_end = true;
}

bool AttachedPeers::expects_end() const {
  return std::ranges::any_of(peers_, [](const auto& entry) { return entry.second.expects_end; });
}

std::vector<PeerId> AttachedPeers::all() const {
  std::vector<PeerId> all;
  for (const auto& [slot, attached] : peers_) all.push_back(attached.peer);
  return all;
}

void AttachedPeers::add_to(std::vector<pollfd>& waits) const {
  for (const auto& [slot, attached] : peers_) {
    waits.push_back({.fd = attached.process.fd(), .events = POLLIN, .revents = 0});
  }
}

std::vector<PeerId> AttachedPeers::take_ended(const pollfd* waits) {
  std::vector<PeerId> ended;
  std::erase_if(peers_, [&](const auto& entry) {
    const Attached& attached = entry.second;
    const bool has_ended = (waits++)->revents != 0 ||
                           (attached.expects_end && !table_->is_claimed(attached.peer.slot));
    if (has_ended) ended.push_back(attached.peer);
    return has_ended;
  });
  return ended;
}

}  // namespace weft
