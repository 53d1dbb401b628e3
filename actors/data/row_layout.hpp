#pragma once
/// RowLayout: finds the places of a global batch's rows in the memory of this worker's chips.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/box.hpp"

namespace weft {

/// The layout of the tensor [batch_size, ...] of a field.
struct FieldLayout {
  TensorType item{};                ///< the type of one row
  std::vector<PlacedBox> shards{};  ///< the shards, by chip of this worker; no dim is padded
};

/// The address of each chip's shard, by field and chip.
using BatchMemory = std::vector<std::vector<std::byte*>>;

/// A layout is immutable, so any thread may use it.
class RowLayout {
 public:
  explicit RowLayout(std::vector<FieldLayout> fields);

  /// Returns the rows that this worker's chips have, wholly or in part, in ascending order.
  std::span<const std::int64_t> rows() const { return rows_; }
  /// Returns the size of one row of the field in the batch. Longer items of the dataset are cut to
  /// it.
  std::size_t item_bytes(std::size_t field) const {
    return static_cast<std::size_t>(fields_[field].item.bytes());
  }
  /// Returns the memory to which the field's item of this row may be written directly; null if no
  /// chip has the complete item.
  std::byte* whole_item(std::size_t field, std::int64_t row, const BatchMemory& memory) const;
  /// Copies the item to all chips that have a part of the row. `item` may be in the memory of one
  /// of these chips.
  void spread(std::size_t field, std::int64_t row, const std::byte* item,
              const BatchMemory& memory) const;
  void clear(std::size_t field, std::int64_t row, const BatchMemory& memory) const;

 private:
  /// The part of a row that is in a shard.
  struct Part {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool is_whole = false;
  };
  /// Returns the part; its memory is null if the shard doesn't contain the row.
  Part part_of(const FieldLayout& field, std::size_t chip, std::int64_t row,
               std::byte* shard) const;

  std::vector<FieldLayout> fields_;
  std::vector<std::int64_t> rows_;
};

}  // namespace weft
