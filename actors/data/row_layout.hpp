#pragma once
/// RowLayout: where the rows of a global batch lie in the memory of a worker's chips.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/type.hpp>

#include "spmd/mesh/box.hpp"

namespace weft {

/// The tensor [batch_size, ...] of a field.
struct FieldLayout {
  TensorType item{};                ///< of one row
  std::vector<PlacedBox> shards{};  ///< by chip; no dim is padded
};

/// The first byte of each chip's shard, by field.
using BatchMemory = std::vector<std::vector<std::byte*>>;

/// Immutable, for any thread.
class RowLayout {
 public:
  explicit RowLayout(std::vector<FieldLayout> fields);

  /// The rows that any of the chips has a part of, ascending.
  std::span<const std::int64_t> rows() const { return rows_; }
  /// The size of the field's item in the batch. The dataset's item may be longer, and is cut then.
  std::size_t item_bytes(std::size_t field) const {
    return static_cast<std::size_t>(fields_[field].item.bytes());
  }
  /// Where the field's item of this row may be written as it is; null if no chip has all of it.
  std::byte* whole_item(std::size_t field, std::int64_t row, const BatchMemory& memory) const;
  /// Copies the item to all chips that have a part of the row. `item` may be the memory of one of
  /// them.
  void spread(std::size_t field, std::int64_t row, const std::byte* item,
              const BatchMemory& memory) const;
  void clear(std::size_t field, std::int64_t row, const BatchMemory& memory) const;

 private:
  /// The part of a row in a shard.
  struct Part {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool is_whole = false;
  };
  /// No memory if the shard hasn't got the row.
  Part part_of(const FieldLayout& field, std::size_t chip, std::int64_t row,
               std::byte* shard) const;

  std::vector<FieldLayout> fields_;
  std::vector<std::int64_t> rows_;
};

}  // namespace weft
