#pragma once
/// Blocks: the blocks of memory that this process holds. It allocated them in its own heap, or took
/// them from messages of other processes.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transport/lanes/lane_format.hpp"
#include "transport/lanes/peers.hpp"

namespace weft {

/// Returns whether no process holds the block. The result stays true until the owner allocates the
/// block again.
bool is_free(const LedgerRow& row) noexcept;

/// Counts in this process's own memory how often it holds each block. In the ledger, which the
/// owner of a block and all holders share, each process has only one bit for each block.
/// Invariants: lane_node.hpp. Thread-safe.
class Blocks {
 public:
  explicit Blocks(Peers& peers);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  /// Returns a block of this process's heap with at least `bytes` bytes, which this process now
  /// holds once. The block's content is unspecified. Throws no_space, whose text says how much of
  /// the heap is used.
  BlockId allocate(std::size_t bytes);
  /// Returns the bytes of a block of this process. No other process may have got the block yet.
  std::span<std::byte> writable(BlockId block) const;
  /// Returns the bytes of a block that this process holds. Throws corrupt if the block's row has a
  /// range outside the owner's heap.
  std::span<const std::byte> bytes(BlockId block) const;

  /// Holds once more a block that this process holds already.
  void hold(BlockId block) noexcept;
  /// Holds a block that another process, such as a message's sender, holds until this call returns.
  /// Throws corrupt if there is no such block.
  void take(BlockId block);
  /// Undoes a hold() or take(), or gives up the block that allocate() returned.
  void release(BlockId block) noexcept;

  /// Returns how often this process holds the block.
  std::uint32_t count(BlockId block) const noexcept;

 private:
  using Count = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kChunk = 1024;  ///< how many counts are allocated together
  using Chunk = std::array<Count, kChunk>;

  Count& count_of(BlockId block);
  Count* known_count(BlockId block) const noexcept;
  void begin_hold(Count& count, LedgerRow& row) noexcept;
  std::optional<std::uint32_t> reuse(std::size_t bytes, std::size_t looks);
  std::uint32_t make(std::size_t bytes);

  Peers* peers_;
  std::uint32_t self_;
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;  ///< the counts, by owner, then by index / kChunk
  std::mutex heap_mutex_;
  /// The blocks of this process that it doesn't hold itself, by size. Other processes may hold
  /// them. The block that was released last is at the back.
  std::map<std::size_t, std::deque<std::uint32_t>> idle_;
  std::vector<bool> is_idle_;   ///< whether a block is in `idle_`, by the block's index
  std::size_t used_bytes_ = 0;  ///< how much of the heap the blocks use
};

}  // namespace weft
