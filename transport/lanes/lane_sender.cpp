#include "transport/lanes/lane_sender.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {

LaneSender::LaneSender(Peers& peers, Blocks& blocks, PeerId to, std::uint32_t port)
    : blocks_(&blocks), to_(to), self_(peers.self()) {
  if (!peers.table().is_alive(to)) {
    fail(Errc::peer_lost, "process {} of the actor system has died", to.slot);
  }
  PeerMemory& memory = peers.current(to.slot);
  if (port >= memory.port_count()) {
    fail(Errc::invalid_argument,
         "process {} of the actor system has {} ports, and none of number "
         "{}",
         to.slot, memory.port_count(), port);
  }
  port_ = &memory.port(port);
  bell_ = &memory.bell_of(port);
  lane_ = &memory.open_lane(port, self_);
}

bool LaneSender::send(const OutMessage& message, Ring ring_when) {
  if (message.body.size() > kBodyBytesMax || message.blocks.size() > kMessageBlocksMax) {
    fail(Errc::invalid_argument,
         "a message of {} bytes and {} blocks: expected at most {} bytes and {} blocks; put large "
         "data into tensors",
         message.body.size(), message.blocks.size(), kBodyBytesMax, kMessageBlocksMax);
  }
  const std::lock_guard lock(mutex_);
  if (!away_.empty() || sent_ - seen_head_ >= kLaneEntryCount) {
    seen_head_ = head();
    release_up_to(seen_head_);
    if (sent_ - seen_head_ >= kLaneEntryCount) return false;
  }
  Entry& entry = lane_->entries[sent_ % kLaneEntryCount];
  write(entry, message);
  ++sent_;
  entry.number.store(sent_, std::memory_order_seq_cst);
  ring(ring_when);
  return true;
}

void LaneSender::write(Entry& entry, const OutMessage& message) {
  const bool fits =
      message.body.size() <= kInlineBodyBytes && message.blocks.size() <= kInlineBlockCount;
  // Atomic because another process that looks for its call's answer may read this word meanwhile.
  std::atomic_ref(entry.call).store(message.heading.call, std::memory_order_relaxed);
  entry.target = message.heading.target;
  entry.kind = message.heading.kind;
  if (fits) {
    entry.body_bytes = static_cast<std::uint32_t>(message.body.size());
    entry.block_count = static_cast<std::uint16_t>(message.blocks.size());
    if (!message.body.empty()) std::memcpy(entry.body, message.body.data(), message.body.size());
    for (std::size_t i = 0; i < message.blocks.size(); ++i) {
      entry.blocks[i] = message.blocks[i].word;
    }
  } else {
    const BlockId block = put_in_block(message);  // may throw; no block has been noted as away yet
    entry.blocks[0] = block.word;
    away_.push_back({sent_ + 1, block});
  }
  entry.is_in_block = fits ? 0 : 1;
  for (const BlockId block : message.blocks) {
    blocks_->hold(block);
    away_.push_back({sent_ + 1, block});
  }
}

BlockId LaneSender::put_in_block(const OutMessage& message) {
  const std::size_t list_bytes = message.blocks.size() * sizeof(std::uint32_t);
  const BlockId block = blocks_->allocate(sizeof(LongBody) + list_bytes + message.body.size());
  std::byte* at = blocks_->writable(block).data();
  const LongBody head{.body_bytes = static_cast<std::uint32_t>(message.body.size()),
                      .block_count = static_cast<std::uint32_t>(message.blocks.size())};
  std::memcpy(at, &head, sizeof(head));
  if (list_bytes > 0) std::memcpy(at + sizeof(head), message.blocks.data(), list_bytes);
  if (!message.body.empty()) {
    std::memcpy(at + sizeof(head) + list_bytes, message.body.data(), message.body.size());
  }
  return block;
}

void LaneSender::ring(Ring when) {
  const std::uint64_t bit = std::uint64_t{1} << (self_ % 64);
  std::atomic<std::uint64_t>& watched = port_->watched[self_ / 64];
  if ((watched.load(std::memory_order_seq_cst) & bit) == 0) {
    watched.fetch_or(bit, std::memory_order_seq_cst);
  }
  if (when == Ring::if_asleep && bell_->asleep.load(std::memory_order_seq_cst) == 0) return;
  bell_->rung.fetch_add(1, std::memory_order_seq_cst);
  wake_all(bell_->rung);
}

bool LaneSender::has_room() const { return waiting() < kLaneEntryCount; }

bool LaneSender::wait_for_room(int spins, std::chrono::nanoseconds at_most) {
  for (int i = 0; i < spins; ++i) {
    if (has_room()) return true;
    pause_cpu();
  }
  const std::uint32_t seen = lane_->room.load(std::memory_order_seq_cst);
  lane_->sender_waits.store(1, std::memory_order_seq_cst);
  if (has_room()) return true;
  ring(Ring::always);
  sleep_on(lane_->room, seen, at_most);
  return has_room();
}

void LaneSender::release_up_to(std::uint64_t head) {
  while (!away_.empty() && away_.front().number <= head) {
    blocks_->release(away_.front().block);
    away_.pop_front();
  }
}

void LaneSender::release_taken() {
  const std::lock_guard lock(mutex_);
  release_up_to(head());
}

std::vector<LaneHeading> LaneSender::forget() {
  const std::lock_guard lock(mutex_);
  release_up_to(sent_);
  std::vector<LaneHeading> lost;
  for (std::uint64_t taken =
           std::max(head(), sent_ - std::min<std::uint64_t>(sent_, kLaneEntryCount));
       taken < sent_; ++taken) {
    const Entry& entry = lane_->entries[taken % kLaneEntryCount];
    lost.push_back({.call = entry.call, .target = entry.target, .kind = entry.kind});
  }
  return lost;
}

std::uint64_t LaneSender::waiting() const {
  const std::lock_guard lock(mutex_);
  return sent_ - std::min(sent_, head());
}

}  // namespace weft
