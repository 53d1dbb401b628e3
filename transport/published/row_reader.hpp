#pragma once
/// RowReader: reads rows in the order that RowOrder has given them.

#include <chrono>
#include <cstdint>
#include <mutex>

#include <weft/data/dataset.hpp>

#include "transport/published/row_memory.hpp"

namespace weft {

/// Thread-safe.
class RowReader {
 public:
  /// `memory` must outlive the object. The first row that worker 0 reads becomes the number of the
  /// first row that arrives, if nothing has been read yet.
  RowReader(const RowMemory& memory, int worker) : memory_(&memory), worker_(worker) {}

  /// Copies the fields of a row. Returns false if the row hasn't arrived yet; worker 0 then takes
  /// it as soon as it has arrived. Throws not_found if the row was released, and corrupt.
  bool read(std::uint64_t row, ItemMemory out) const;

  /// wait_for_news() returns when news() is no longer `seen`, because rows may have arrived, or
  /// `at_most` has passed; it may return early.
  std::uint32_t news() const noexcept;
  void wait_for_news(std::uint32_t seen, std::chrono::nanoseconds at_most) const noexcept;

 private:
  void want(std::uint64_t row) const;
  RowChunk find(std::uint64_t row, std::uint64_t chunks) const;

  std::uint32_t block_of(const RowChunk& chunk, std::uint32_t row) const;

  const RowMemory* memory_;
  int worker_;
  /// The block that was read last, from which later rows of the same chunk are found faster.
  struct Last {
    std::uint64_t first_row = kNoRow;  ///< of the chunk
    std::uint32_t number = 0;          ///< of the block in the chunk
    std::uint32_t block = 0;
  };
  mutable std::mutex mutex_;
  mutable Last last_;  // guarded by mutex_
};

}  // namespace weft
