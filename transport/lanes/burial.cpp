#include "transport/lanes/burial.hpp"

#include <algorithm>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "transport/lanes/blocks.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

bool less(BlockId a, BlockId b) { return a.word < b.word; }

bool has_memory(PeerState state) { return state == PeerState::alive || state == PeerState::dead; }

/// Appends the ids of the blocks that a long message lists. `block` contains the message's list and
/// body. The dead process wrote them, so they don't change any more.
void append_long(const PeerMemory& owner, BlockId block, std::vector<BlockId>& blocks) {
  if (block.owner() != owner.peer().slot || block.index() >= owner.block_count()) return;
  const LedgerRow& row = owner.ledger_row(block.index());
  const std::uint64_t offset = row.offset.load(std::memory_order_relaxed);
  LongBody head{};
  if (offset > owner.heap_bytes() || owner.heap_bytes() - offset < kBlockBytesMin) return;
  std::memcpy(&head, owner.heap() + offset, sizeof(head));
  if (head.block_count == 0 || head.block_count > kMessageBlocksMax) return;
  std::vector<BlockId> listed(head.block_count);
  std::memcpy(listed.data(), owner.heap() + offset + sizeof(head), listed.size() * sizeof(BlockId));
  blocks.insert(blocks.end(), listed.begin(), listed.end());
}

/// Calls f(memory, state) for each peer, living or dead, that has memory.
template <typename F>
void for_each_memory(const PeerTable& table, Peers& peers, F f) {
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    const PeerLife life = table.life(slot);
    if (!has_memory(life.state)) continue;
    try {
      f(peers.current(slot), life.state);
    } catch (const Error& error) {
      // The peer died before its memory was complete.
      if (error.code() != Errc::not_found && error.code() != Errc::corrupt) throw;
    }
  }
}

}  // namespace

Burial::Burial(PeerTable& table, Peers& peers, PeerId dead)
    : table_(&table), peers_(&peers), dead_(dead) {
  table.mark(dead.slot, PeerState::dead);
  try {
    begin();
  } catch (const Error&) {
    return;  // finish() tries again
  }
}

void Burial::begin() {
  sent_.clear();
  collect_sent();
  clear_bits(sent_);
  for_each_memory(*table_, *peers_, [](const PeerMemory& memory, PeerState state) {
    if (state != PeerState::alive) return;
    for (std::uint32_t port = 0; port < memory.port_count(); ++port) {
      memory.port(port).rung.fetch_add(1, std::memory_order_seq_cst);
      wake_all(memory.port(port).rung);
    }
  });
  has_begun_ = true;
}

void Burial::collect_sent() {
  for_each_memory(*table_, *peers_, [&](const PeerMemory& taker, PeerState state) {
    if (state != PeerState::alive) return;
    for (std::uint32_t port = 0; port < taker.port_count(); ++port) {
      const std::uint64_t opened =
          taker.port(port).opened[dead_.slot / 64].load(std::memory_order_seq_cst);
      if ((opened >> (dead_.slot % 64) & 1) == 0) continue;
      const Lane& lane = taker.lane(port, dead_.slot);
      const std::uint64_t head = lane.head.load(std::memory_order_seq_cst);
      for (std::uint64_t n = head; n < head + kLaneEntryCount; ++n) {
        const Entry& entry = lane.entries[n % kLaneEntryCount];
        if (entry.number.load(std::memory_order_seq_cst) != n + 1) break;
        if (entry.is_in_block != 0) {
          sent_.push_back({entry.blocks[0]});
          append_long(peers_->current(dead_.slot), {entry.blocks[0]}, sent_);
          continue;
        }
        for (std::size_t i = 0; i < std::min<std::size_t>(entry.block_count, kInlineBlockCount);
             ++i) {
          sent_.push_back({entry.blocks[i]});
        }
      }
    }
  });
  std::sort(sent_.begin(), sent_.end(), less);
}

/// Clears the dead process's bits of all blocks except the blocks in `kept`, which is sorted.
void Burial::clear_bits(const std::vector<BlockId>& kept) {
  const std::uint64_t mask = ~(std::uint64_t{1} << (dead_.slot % 64));
  for_each_memory(*table_, *peers_, [&](const PeerMemory& owner, PeerState) {
    for (std::uint32_t index = 0; index < owner.block_count(); ++index) {
      const BlockId block = BlockId::of(owner.peer().slot, index);
      if (std::binary_search(kept.begin(), kept.end(), block, less)) continue;
      owner.ledger_row(index).holders[dead_.slot / 64].fetch_and(mask, std::memory_order_seq_cst);
    }
  });
}

bool Burial::all_have_settled() const {
  for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
    if (table_->life(slot).state == PeerState::alive && table_->role(slot) != PeerRole::leaving &&
        !table_->has_settled(slot, dead_)) {
      return false;
    }
  }
  return true;
}

bool Burial::heap_is_held() {
  bool held = false;
  try {
    const PeerMemory& memory = peers_->current(dead_.slot);
    for (std::uint32_t index = 0; index < memory.block_count() && !held; ++index) {
      held = !is_free(memory.ledger_row(index));
    }
  } catch (const Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::corrupt) throw;
  }
  return held;
}

bool Burial::finish() {
  if (!has_begun_) begin();
  if (!is_settled_) {
    if (!all_have_settled()) return false;
    clear_bits({});
    is_settled_ = true;
  }
  if (heap_is_held()) return false;
  PeerMemory::remove(table_->system(), dead_);
  table_->mark(dead_.slot, PeerState::free);
  return true;
}

}  // namespace weft
