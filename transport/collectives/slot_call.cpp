#include "transport/collectives/slot_call.hpp"

#include <algorithm>

namespace weft {

SlotCall::SlotCall(const CollectiveCall& call, Group& group, JobMemory& memory)
    : group_(&group),
      progress_(group.progress.get()),
      own_(group.own),
      root_(call.from[0]),
      root_chip_(static_cast<std::uint32_t>(group.chip(root_))),
      is_root_(root_ == group.index),
      ring_(&memory.slot_ring(group.mask, group.chip(root_))),
      bytes_(bytes_of(call, group.size()).source),
      source_(memory.arena(group.chip(group.index)) + call.source),
      destination_(memory.arena(group.chip(group.index)) + call.destination) {
  memory.reserve_slot_ring(group.mask, group.chip(group.index));
  memory.reserve_slot_ring(group.mask, group.chip(root_));
}

bool SlotCall::find_room(std::uint64_t message) const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Peer& peer : group_->peers) {
    if (lags(peer, message) || has_diverged(peer, message)) return false;
    least = std::min(least, peer.line->messages.load(std::memory_order_acquire));
  }
  progress_->room = least + kSlotCount - 1;
  return true;
}

void SlotCall::record(std::uint64_t message, const StartedCall& started) const {
  SlotRecord& record = ring_->records[message % kSlotCount];
  write_call(record.words, record.name, started.call->words(), started.call->name());
  progress_->recorded[message % kSlotCount] = started.call->id();
}

bool SlotCall::has_diverged(const Peer& peer, std::uint64_t message) const {
  const std::uint64_t theirs = peer.line->messages.load(std::memory_order_acquire);
  return theirs > message ||
         (theirs == message && peer.line->root.load(std::memory_order_relaxed) != root_chip_);
}

bool SlotCall::is_awaited(const Peer& peer, std::uint64_t message) const {
  return is_root_ ? lags(peer, message) : peer.member == root_ && !has_arrived(message);
}

std::uint64_t SlotCall::number_awaited(const Peer& peer) const {
  const std::uint64_t last = peer.line->messages.load(std::memory_order_acquire);
  const std::uint64_t next = (last / kPublishedEach + 1) * kPublishedEach;
  return slot(next).message.load(std::memory_order_acquire) == next ? number(next) : 0;
}

std::optional<RecordedCall> read_slot_record(const SlotRing& ring, std::uint64_t number,
                                             std::uint64_t last) {
  for (std::size_t i = 0; i < kSlotCount; ++i) {
    const SlotRecord& record = ring.records[i];
    if (record.number.load(std::memory_order_relaxed) != number ||
        ring.slots[i].message.load(std::memory_order_acquire) > last) {
      continue;
    }
    RecordedCall call = read_call(number, record.words, record.name);
    const std::uint64_t signature = record.signature.load(std::memory_order_relaxed);
    if (signature == signature_of(number, digest_of(call.words))) return call;
  }
  return std::nullopt;
}

}  // namespace weft
