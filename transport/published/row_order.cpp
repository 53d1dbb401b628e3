#include "transport/published/row_order.hpp"

#include <bitset>

#include "transport/memory/life_lock.hpp"

namespace weft {

RowOrder::RowOrder(RowMemory& memory) : memory_(&memory), header_(&memory.header()) {
  const std::uint64_t chunks = header_->chunks.load();
  const std::uint64_t taken = header_->taken.load();
  if (chunks > 0 && memory.chunk(chunks - 1).arrival == taken + 1) header_->taken.store(taken + 1);
  header_->rows.store(row_count(), std::memory_order_relaxed);
  collect();
}

/// Returns the blocks of a chunk, or nothing if the words that link them are invalid.
std::optional<std::vector<std::uint32_t>> RowOrder::chain_of(std::uint32_t block,
                                                             std::uint64_t rows) const {
  std::vector<std::uint32_t> blocks{block};
  const std::uint64_t count = (rows + memory_->rows_per_block() - 1) / memory_->rows_per_block();
  if (block >= memory_->block_count() || count == 0 || count > memory_->block_count()) return {};
  while (blocks.size() < count) {
    const std::uint32_t next = memory_->block(blocks.back()).next.load(std::memory_order_relaxed);
    if (next == 0 || next > memory_->block_count()) return {};
    blocks.push_back(next - 1);
  }
  return blocks;
}

/// Returns the number of the first row that loaders may not read yet.
std::uint64_t RowOrder::row_count() const {
  const std::uint64_t chunks = header_->chunks.load(std::memory_order_relaxed);
  if (chunks == 0) return header_->base.load(std::memory_order_relaxed);
  const RowChunk& last = memory_->chunk(chunks - 1);
  return last.first_row + last.rows;
}

void RowOrder::take() {
  if (header_->base.load(std::memory_order_acquire) == kNoRow) return;
  while (row_count() < header_->wanted.load(std::memory_order_acquire)) {
    const std::uint64_t number = header_->taken.load(std::memory_order_relaxed) + 1;
    const auto arrival = ArrivalWord::of(memory_->arrival(number).load(std::memory_order_acquire));
    if (arrival.number != number) return;
    take_arrival(arrival);
  }
}

void RowOrder::take_arrival(const ArrivalWord& arrival) {
  const bool has_block = arrival.block < memory_->block_count();
  const RowBlock& first = memory_->block(has_block ? arrival.block : 0);
  const std::uint32_t rows = has_block ? first.rows.load(std::memory_order_relaxed) : 0;
  const std::uint64_t version = first.version.load(std::memory_order_relaxed);
  const auto blocks = chain_of(arrival.block, rows);
  if (!blocks) {  // a sender has written invalid words
    header_->taken.store(arrival.number, std::memory_order_release);
    return;
  }
  for (const std::uint32_t block : *blocks) {
    memory_->block(block).owner.store(kTakenBlock, std::memory_order_release);
  }
  const std::uint64_t step = header_->step.load(std::memory_order_relaxed);
  const std::uint64_t lag = step > version ? step - version : 0;
  if (lag > memory_->max_lag()) {
    header_->dropped_rows.fetch_add(rows, std::memory_order_relaxed);
    header_->taken.store(arrival.number, std::memory_order_release);
    free_blocks(*blocks);
    return;
  }
  header_->lag.store(lag, std::memory_order_relaxed);
  const std::uint64_t chunks = header_->chunks.load(std::memory_order_relaxed);
  memory_->chunk(chunks) = {
      .arrival = arrival.number, .first_row = row_count(), .rows = rows, .block = arrival.block};
  header_->chunks.store(chunks + 1, std::memory_order_release);
  header_->rows.store(row_count(), std::memory_order_relaxed);
  header_->taken.store(arrival.number, std::memory_order_release);
  memory_->tell_news();
}

void RowOrder::release(std::uint64_t row) {
  for (;;) {
    const std::uint64_t released = header_->released.load(std::memory_order_relaxed);
    if (released == header_->chunks.load(std::memory_order_relaxed)) return;
    const RowChunk chunk = memory_->chunk(released);
    if (chunk.first_row + chunk.rows > row) return;
    const auto blocks = chain_of(chunk.block, chunk.rows);
    header_->released.store(released + 1, std::memory_order_release);
    if (blocks) free_blocks(*blocks);
  }
}

void RowOrder::free_blocks(const std::vector<std::uint32_t>& blocks) {
  for (const std::uint32_t block : blocks) {
    memory_->block(block).owner.store(0, std::memory_order_release);
  }
  memory_->tell_news();
}

/// Returns for each block whether it belongs to a chunk that loaders may read, or to an arrival.
std::vector<bool> RowOrder::used_blocks() const {
  std::vector<bool> used(memory_->block_count());
  const auto use = [&](std::uint32_t block, std::uint64_t rows) {
    const auto blocks = chain_of(block, rows);
    for (const std::uint32_t each : blocks.value_or(std::vector<std::uint32_t>{})) {
      used[each] = true;
    }
  };
  for (std::uint64_t c = header_->released.load(); c < header_->chunks.load(); ++c) {
    use(memory_->chunk(c).block, memory_->chunk(c).rows);
  }
  for (std::uint64_t number = header_->taken.load() + 1;; ++number) {
    const auto arrival = ArrivalWord::of(memory_->arrival(number).load(std::memory_order_acquire));
    if (arrival.number != number) return used;
    if (arrival.block >= memory_->block_count()) continue;
    use(arrival.block, memory_->block(arrival.block).rows.load(std::memory_order_relaxed));
  }
}

void RowOrder::collect() {
  std::bitset<kSenderCountMax> senders;
  for (std::uint32_t block = 0; block < memory_->block_count(); ++block) {
    const std::uint64_t owner = memory_->block(block).owner.load(std::memory_order_relaxed);
    if (owner != 0 && owner <= kSenderCountMax) senders.set(owner - 1);
  }
  // While this process has the lock of a sender's number, the sender is dead, and no new sender
  // takes the number.
  std::vector<LifeLock> locks;
  std::bitset<kSenderCountMax> dead;
  for (std::uint32_t sender = 0; sender < kSenderCountMax; ++sender) {
    if (!senders.test(sender)) continue;
    auto lock = LifeLock::take(memory_->segment(), sender);
    if (!lock) continue;
    locks.push_back(std::move(*lock));
    dead.set(sender);
  }
  const std::vector<bool> used = used_blocks();
  std::vector<std::uint32_t> left;
  for (std::uint32_t block = 0; block < memory_->block_count(); ++block) {
    const std::uint64_t owner = memory_->block(block).owner.load(std::memory_order_relaxed);
    const bool is_of_dead = owner != 0 && owner <= kSenderCountMax && dead.test(owner - 1);
    if (!used[block] && (owner == kTakenBlock || is_of_dead)) left.push_back(block);
  }
  if (!left.empty()) free_blocks(left);
}

}  // namespace weft
