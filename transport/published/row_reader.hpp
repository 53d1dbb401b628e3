#pragma once
/// RowReader: reads rows in the order in which RowOrder has put them.

#include <chrono>
#include <cstdint>
#include <mutex>

#include <weft/data/dataset.hpp>

#include "transport/published/row_memory.hpp"

namespace weft {

/// Thread-safe.
class RowReader {
 public:
  /// `memory` must outlive the object. If nothing has been read yet, the first row that worker 0
  /// reads sets the number of the first row that arrives.
  RowReader(const RowMemory& memory, int worker) : memory_(&memory), worker_(worker) {}

  /// Copies the fields of a row. Returns false if the row hasn't arrived yet; worker 0 will then
  /// take the row as soon as it arrives. Throws not_found if the row was released, and corrupt.
  bool read(std::uint64_t row, ItemMemory out) const;

  /// Waits until news() differs from `seen`, because rows may have arrived, or `at_most` has
  /// passed. May return early.
  std::uint32_t news() const noexcept;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

 private:
  void want(std::uint64_t row) const;
  RowChunk find(std::uint64_t row, std::uint64_t chunks) const;

  std::uint32_t block_of(const RowChunk& chunk, std::uint32_t row) const;

  const RowMemory* memory_;
  int worker_;
  /// The block that was read last. Later rows of the same chunk are found faster from there.
  struct Last {
    std::uint64_t first_row = kNoRow;  ///< the chunk's first row
    std::uint32_t number = 0;          ///< the block's place in the chunk
    std::uint32_t block = 0;
  };
  mutable std::mutex mutex_;
  mutable Last last_;  // guarded by mutex_
};

}  // namespace weft
