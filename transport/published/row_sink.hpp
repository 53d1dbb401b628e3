#pragma once
/// RowSink: the interface through which a process writes rows under a name.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/published/tensor_table.hpp"

namespace weft {

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual const std::vector<PublishedTensor>& fields() const = 0;
  /// Returns how many rows fit in the memory.
  virtual std::uint64_t capacity() const = 0;
  /// Takes blocks for a chunk of 1 to capacity() rows. Returns nothing if not enough are free.
  virtual std::optional<std::vector<std::uint32_t>> take(std::uint64_t rows) = 0;
  /// Returns the memory of row `row` of the chunk that has these blocks.
  virtual std::byte* row(std::span<const std::uint32_t> blocks, std::uint64_t row) const = 0;
  /// Gives back blocks that take() returned.
  virtual void give_back(std::span<const std::uint32_t> blocks) noexcept = 0;
  /// Sends the chunk in `blocks`, which take() returned for `rows` rows.
  virtual void send(std::span<const std::uint32_t> blocks, std::uint64_t rows,
                    std::uint64_t version) = 0;
  virtual bool has_job_ended() const = 0;

  /// wait_for_news() waits until news() differs from `seen`, because blocks may have been freed, or
  /// `at_most` has passed. It may return early.
  virtual std::uint32_t news() const noexcept = 0;
  virtual void wait_for_news(std::uint32_t seen,
                             std::chrono::nanoseconds at_most) const noexcept = 0;
};

}  // namespace weft
