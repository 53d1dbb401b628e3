#include "transport/lanes/lane_node.hpp"

#include <unistd.h>

#include <weft/tensor/error.hpp>

namespace weft {

LaneNode::LaneNode(PeerTable& table, PeerId self, const PeerMemoryOptions& options)
    : table_(&table),
      peers_(table, PeerMemory::create(table.system(), self, options)),
      blocks_(peers_) {
  for (std::uint32_t port = 0; port < options.port_count; ++port) {
    ports_.push_back(std::make_unique<LanePort>(peers_, blocks_, port));
    seen_.push_back({.deaths = 0, .settled = std::vector<std::uint32_t>(kPeerCountMax)});
  }
  table.set_pid(self.slot, getpid());
}

std::shared_ptr<LaneSender> LaneNode::sender(PeerId to, std::uint32_t port) {
  const std::lock_guard lock(mutex_);
  const auto known = senders_.find({to.slot, port});
  if (known != senders_.end() && known->second->to() == to) return known->second;
  auto opened = std::make_shared<LaneSender>(peers_, blocks_, to, port);
  senders_.insert_or_assign({to.slot, port}, opened);
  return opened;
}

void LaneNode::settle(std::uint32_t port, const OnMessage& on_message) {
  Seen& seen = seen_[port];
  const std::uint32_t deaths = table_->deaths();
  if (deaths == seen.deaths) return;
  seen.deaths = deaths;
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const PeerLife life = table_->life(slot);
    if (life.state != PeerState::dead || seen.settled[slot] == life.incarnation) continue;
    pass_on_last_messages(port, slot, on_message);
    ports_[port]->clear(slot);
    seen.settled[slot] = life.incarnation;
    finish_settling({.slot = slot, .incarnation = life.incarnation});
  }
}

void LaneNode::pass_on_last_messages(std::uint32_t port, std::uint32_t slot,
                                     const OnMessage& on_message) {
  for (;;) {
    std::optional<InMessage> message;
    try {
      message = ports_[port]->take_from_dead(slot);
    } catch (const Error& error) {
      if (error.code() != Errc::corrupt) throw;
      return;  // messages after the corrupt one are lost with their sender
    }
    if (!message) return;
    on_message(std::move(*message));
  }
}

/// Called once per port that has emptied its lane from `dead`. The last call drops the senders to
/// `dead`, reports lost messages, and marks the death settled.
void LaneNode::finish_settling(PeerId dead) {
  const std::lock_guard lock(mutex_);
  std::uint32_t& unsettled = unsettled_ports_.try_emplace(dead.slot, port_count()).first->second;
  if (--unsettled > 0) return;
  unsettled_ports_.erase(dead.slot);
  std::erase_if(senders_, [&](const auto& entry) {
    if (entry.second->to() != dead) return false;
    for (const LaneHeading& lost : entry.second->forget()) {
      if (on_lost_) on_lost_(lost);
    }
    return true;
  });
  table_->set_settled(self().slot, dead);
}

void LaneNode::release_taken() {
  const std::lock_guard lock(mutex_);
  for (const auto& [place, sender] : senders_) sender->release_taken();
}

}  // namespace weft
