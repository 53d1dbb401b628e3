#pragma once
/// RowOrder: puts the rows that have arrived into one order, which all loaders of a job read.

#include <cstdint>
#include <optional>
#include <vector>

#include "transport/published/row_memory.hpp"

namespace weft {

/// For one thread of worker 0. Invariants: row_format.hpp.
class RowOrder {
 public:
  /// Continues where the RowOrder of a killed worker 0 stopped. `memory` must outlive the object.
  explicit RowOrder(RowMemory& memory);

  /// Takes arrived chunks, until there are as many rows as loaders want or no chunk is left. Drops
  /// chunks that are older than max_lag steps.
  void take();
  /// Frees the chunks all of whose rows are before row `row`.
  void release(std::uint64_t row);
  /// Frees blocks that dead senders or a killed worker 0 have left behind.
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
