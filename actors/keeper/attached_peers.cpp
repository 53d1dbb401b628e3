#include "actors/keeper/attached_peers.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

bool AttachedPeers::add(PeerId peer) {
  ProcessFd process(table_->pid(peer.slot));
  // Only a process that holds the slot's lock is surely the one that has joined, because a later
  // process may have the same pid.
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

bool AttachedPeers::is_alive(const Attached& attached) const {
  try {
    return table_->is_claimed(attached.peer.slot);
  } catch (const Error&) {
    return true;  // the lock can't be checked now
  }
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
  for (auto& [slot, attached] : peers_) {
    if ((waits++)->revents != 0) {  // a process with this pid has ended; the lock tells whether it
                                    // is this one
      attached.expects_end = true;
      attached.process = ProcessFd(0);
    }
    if (attached.expects_end && !is_alive(attached)) ended.push_back(attached.peer);
  }
  for (const PeerId peer : ended) peers_.erase(peer.slot);
  return ended;
}

}  // namespace weft
