#pragma once
/// RowOrder: puts the rows that have arrived in one order, for all loaders of a job.

#include <cstdint>
#include <optional>
#include <vector>

#include "transport/published/row_memory.hpp"

namespace weft {

/// Only one thread of worker 0 uses it. Invariants: row_format.hpp.
class RowOrder {
 public:
  /// Continues where a predecessor has ended. `memory` must outlive the object.
  explicit RowOrder(RowMemory& memory);

  /// Takes chunks that have arrived, until there are as many rows as loaders want or no chunk is
  /// left. Drops chunks that are older than max_lag steps.
  void take();
  /// Frees chunks all of whose rows are before `row`.
  void release(std::uint64_t row);
  /// Frees blocks that dead senders, or a killed predecessor, have left.
  void collect();

 private:
  std::optional<std::vector<std::uint32_t>> chain_of(std::uint32_t block, std::uint64_t rows) const;
  void take_arrival(const ArrivalWord& arrival);
  void free_blocks(const std::vector<std::uint32_t>& blocks);
  std::uint64_t row_count() const;
  std::vector<bool> used_blocks() const;

  RowMemory* memory_;
  RowHeader* header_;
};

}  // namespace weft
