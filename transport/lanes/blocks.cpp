#include "transport/lanes/blocks.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {
namespace {

/// Set in a count while a thread changes the count between 0 and 1 and sets or clears the ledger's
/// bit.
constexpr std::uint32_t kChanging = 1U << 31U;
constexpr std::size_t kSizesPerOctave = 8;
/// The number of blocks that allocate() tests for reuse before it makes a new block.
constexpr std::size_t kLooks = 16;

/// Rounds `bytes` up to a size of blocks. Neighboring sizes differ by at most an eighth.
std::size_t size_of(std::size_t bytes) {
  const std::size_t octave = std::bit_floor(std::max(bytes, kBlockBytesMin));
  const std::size_t unit = std::max(octave / kSizesPerOctave, kBlockBytesMin);
  return (std::max(bytes, kBlockBytesMin) + unit - 1) / unit * unit;
}

std::uint64_t bit_of(std::uint32_t slot) { return std::uint64_t{1} << (slot % 64); }

void set_bit(LedgerRow& row, std::uint32_t slot) noexcept {
  row.holders[slot / 64].fetch_or(bit_of(slot), std::memory_order_seq_cst);
  row.sets.fetch_add(1, std::memory_order_seq_cst);
}

void clear_bit(LedgerRow& row, std::uint32_t slot) noexcept {
  row.holders[slot / 64].fetch_and(~bit_of(slot), std::memory_order_seq_cst);
}

}  // namespace

bool is_free(const LedgerRow& row) noexcept {
  const std::uint64_t before = row.sets.load(std::memory_order_seq_cst);
  for (const auto& holders : row.holders) {
    if (holders.load(std::memory_order_seq_cst) != 0) return false;
  }
  return row.sets.load(std::memory_order_seq_cst) == before;
}

Blocks::Blocks(Peers& peers)
    : peers_(&peers),
      self_(peers.self()),
      chunks_(std::make_unique<std::atomic<Chunk*>[]>(kPeerCountMax * kBlockCountMax / kChunk)) {}

Blocks::~Blocks() {
  for (std::size_t i = 0; i < kPeerCountMax * kBlockCountMax / kChunk; ++i) {
    delete chunks_[i].load(std::memory_order_relaxed);
  }
}

Blocks::Count* Blocks::known_count(BlockId block) const noexcept {
  const std::size_t place = block.owner() * (kBlockCountMax / kChunk) + block.index() / kChunk;
  Chunk* chunk = chunks_[place].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &(*chunk)[block.index() % kChunk];
}

Blocks::Count& Blocks::count_of(BlockId block) {
  if (Count* known = known_count(block)) return *known;
  const std::size_t place = block.owner() * (kBlockCountMax / kChunk) + block.index() / kChunk;
  auto made = std::make_unique<Chunk>();
  Chunk* none = nullptr;
  if (chunks_[place].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
    made.release();
  }
  return *known_count(block);
}

std::uint32_t Blocks::count(BlockId block) const noexcept {
  const Count* known = known_count(block);
  return known == nullptr ? 0 : known->load(std::memory_order_relaxed) & ~kChanging;
}

/// Sets the ledger's bit and then the count to 1. Expects a count of kChanging.
void Blocks::begin_hold(Count& count, LedgerRow& row) noexcept {
  set_bit(row, self_);
  count.store(1, std::memory_order_release);
}

void Blocks::hold(BlockId block) noexcept {
  known_count(block)->fetch_add(1, std::memory_order_relaxed);
}

void Blocks::take(BlockId block) {
  PeerMemory* owner = nullptr;
  try {
    if (block.index() < kBlockCountMax) owner = &peers_->current(block.owner());
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;  // no process has the slot
  }
  if (owner == nullptr || block.index() >= owner->block_count()) {
    fail(Errc::corrupt, "a message has block {} of process {}, which has {} blocks", block.index(),
         block.owner(), owner == nullptr ? 0 : owner->block_count());
  }
  Count& count = count_of(block);
  std::uint32_t before = count.load(std::memory_order_relaxed);
  for (;;) {
    if ((before & kChanging) != 0) {
      pause_cpu();
      before = count.load(std::memory_order_relaxed);
    } else if (count.compare_exchange_weak(before, before == 0 ? kChanging : before + 1,
                                           std::memory_order_acquire)) {
      if (before == 0) begin_hold(count, owner->ledger_row(block.index()));
      return;
    }
  }
}

void Blocks::release(BlockId block) noexcept {
  Count& count = *known_count(block);
  std::uint32_t before = count.load(std::memory_order_relaxed);
  // This is the only thread that can change the count between 0 and 1, since the caller holds the
  // block.
  while (!count.compare_exchange_weak(before, before == 1 ? kChanging : before - 1,
                                      std::memory_order_acq_rel)) {
  }
  if (before != 1) return;
  LedgerRow& row = peers_->mapped(block.owner()).ledger_row(block.index());
  const std::size_t bytes = row.bytes.load(std::memory_order_relaxed);
  clear_bit(row, self_);
  count.store(0, std::memory_order_release);
  if (block.owner() != self_) return;
  const std::lock_guard lock(heap_mutex_);
  // A block that this process gave up, and then took back from a message, may still be in `idle_`.
  if (is_idle_[block.index()]) return;
  is_idle_[block.index()] = true;
  idle_[bytes].push_back(block.index());
}

BlockId Blocks::allocate(std::size_t bytes) {
  const std::size_t size = size_of(bytes);
  const std::lock_guard lock(heap_mutex_);
  std::optional<std::uint32_t> index = reuse(size, kLooks);
  if (!index) {
    try {
      index = make(size);
    } catch (const Error&) {
      for (auto larger = idle_.lower_bound(size); !index && larger != idle_.end(); ++larger) {
        index = reuse(larger->first, larger->second.size());
      }
      if (!index) throw;
    }
  }
  const BlockId block = BlockId::of(self_, *index);
  count_of(block).store(kChanging, std::memory_order_relaxed);
  begin_hold(count_of(block), peers_->own().ledger_row(*index));
  return block;
}

/// Returns a free block of `bytes` bytes, if there is one. Tests the `looks` idle blocks of this
/// size that were released last. Blocks that other processes hold are tested last the next time.
std::optional<std::uint32_t> Blocks::reuse(std::size_t bytes, std::size_t looks) {
  const auto found = idle_.find(bytes);
  if (found == idle_.end()) return std::nullopt;
  std::deque<std::uint32_t>& idle = found->second;
  for (std::size_t i = std::min(looks, idle.size()); i > 0; --i) {
    const std::uint32_t index = idle.back();
    idle.pop_back();
    if (is_free(peers_->own().ledger_row(index))) {
      is_idle_[index] = false;
      return index;
    }
    idle.push_front(index);
  }
  return std::nullopt;
}

std::uint32_t Blocks::make(std::size_t bytes) {
  PeerMemory& own = peers_->own();
  const std::uint32_t index = own.block_count();
  if (index == kBlockCountMax || bytes > own.heap_bytes() - used_bytes_) {
    fail(Errc::no_space,
         "a block of {} bytes: this process's heap has {} blocks, which use {} of {} bytes; "
         "release tensors of messages earlier, or set heap_bytes higher",
         bytes, index, used_bytes_, own.heap_bytes());
  }
  own.add_block(index, used_bytes_, bytes);
  is_idle_.push_back(false);
  used_bytes_ += bytes;
  return index;
}

std::span<std::byte> Blocks::writable(BlockId block) const {
  WEFT_CHECK(block.owner() == self_, block.word, self_);
  const LedgerRow& row = peers_->own().ledger_row(block.index());
  return {peers_->own().heap() + row.offset.load(std::memory_order_relaxed),
          row.bytes.load(std::memory_order_relaxed)};
}

std::span<const std::byte> Blocks::bytes(BlockId block) const {
  const PeerMemory& owner = peers_->mapped(block.owner());
  const LedgerRow& row = owner.ledger_row(block.index());
  const std::uint64_t offset = row.offset.load(std::memory_order_relaxed);
  const std::uint64_t bytes = row.bytes.load(std::memory_order_relaxed);
  if (offset > owner.heap_bytes() || bytes > owner.heap_bytes() - offset) {
    fail(Errc::corrupt, "block {} of process {} has the range [{}, {} + {}) of a heap of {} bytes",
         block.index(), block.owner(), offset, offset, bytes, owner.heap_bytes());
  }
  return {owner.heap() + offset, bytes};
}

}  // namespace weft
