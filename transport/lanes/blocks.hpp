#pragma once
/// Blocks: the blocks of memory that this process holds: those that it allocated in its own heap,
/// and those of other processes that it took from messages.

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

/// Counts how often this process holds each block, in memory of its own. In the ledger, which the
/// owner of a block and all holders share, a process has one bit for each block. Invariants:
/// lane_node.hpp. Thread-safe.
class Blocks {
 public:
  explicit Blocks(Peers& peers);
  ~Blocks();
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  /// Returns a block of this process's heap with at least `bytes` bytes, which this process holds
  /// once. Its content is unspecified. Throws no_space, with the bytes that are held and free.
  BlockId allocate(std::size_t bytes);
  /// Returns the bytes of a block of this process. Nobody else may have been given the block.
  std::span<std::byte> writable(BlockId block) const;
  /// Returns the bytes of a block that this process holds. Throws corrupt if the block's row has a
  /// range outside the owner's heap.
  std::span<const std::byte> bytes(BlockId block) const;

  /// Holds a block once more. This process must hold it already.
  void hold(BlockId block) noexcept;
  /// Holds a block that another process holds until after this call, as a sender does. Throws
  /// corrupt if there is no such block.
  void take(BlockId block);
  /// Undoes a hold() or take(), or gives up the block that allocate() returned.
  void release(BlockId block) noexcept;

  /// Returns how often this process holds the block.
  std::uint32_t count(BlockId block) const noexcept;

 private:
  using Count = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kChunk = 1024;  ///< counts that are allocated together
  using Chunk = std::array<Count, kChunk>;

  Count& count_of(BlockId block);
  Count* known_count(BlockId block) const noexcept;
  void begin_hold(Count& count, LedgerRow& row) noexcept;
  std::optional<std::uint32_t> reuse(std::size_t bytes, std::size_t looks);
  std::uint32_t make(std::size_t bytes);

  Peers* peers_;
  std::uint32_t self_;
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;  ///< by owner, then by index / kChunk
  std::mutex heap_mutex_;
  /// By size: the blocks of this process that it doesn't hold itself. Others may hold them. The
  /// block that was released last is the last.
  std::map<std::size_t, std::deque<std::uint32_t>> idle_;
  std::vector<bool> is_idle_;   ///< by index
  std::size_t used_bytes_ = 0;  ///< of the heap
};

}  // namespace weft
