#pragma once
/// RowSender: gives rows to a job, as one process of the user.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transport/memory/life_lock.hpp"
#include "transport/published/row_memory.hpp"

namespace weft {

/// If the process dies, its blocks are freed, except those of chunks that have arrived.
/// Thread-safe. Invariants: row_format.hpp.
class RowSender {
 public:
  /// Throws as RowMemory::open(), and no_space if kSenderCountMax processes send already.
  RowSender(std::string_view job, std::string_view name);

  const RowMemory& memory() const { return memory_; }
  /// Returns how many rows all blocks have.
  std::uint64_t capacity() const {
    return std::uint64_t{memory_.block_count()} * memory_.rows_per_block();
  }
  /// Takes blocks for a chunk of 1 to capacity() rows. Returns nothing if not enough are free.
  std::optional<std::vector<std::uint32_t>> take(std::uint64_t rows);
  /// Gives back blocks of take().
  void give_back(std::span<const std::uint32_t> blocks) noexcept;
  /// Sends the chunk of blocks that take() returned for as many rows.
  void send(std::span<const std::uint32_t> blocks, std::uint64_t rows, std::uint64_t version);

  /// wait_for_news() returns when news() is no longer `seen`, because blocks may have been freed,
  /// or `at_most` has passed; it may return early.
  std::uint32_t news() const noexcept;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

 private:
  bool has_blocks() const;

  RowMemory memory_;
  std::uint32_t number_ = 0;  ///< of this sender
  std::optional<LifeLock> life_;
  std::atomic<std::uint32_t> next_{0};  ///< the block at which the next search begins
};

}  // namespace weft
