#pragma once
/// Chooses the sequences of each packed row, and fills the row's fields.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <weft/data/packing.hpp>

namespace weft {

/// A sequence in a row.
struct PackedSequence {
  std::int64_t number = 0;  ///< the caller's number for the sequence
  std::int64_t length = 0;
};
using PackedRow = std::vector<PackedSequence>;

/// Packs sequences into rows: each sequence goes to the first open row that has room. The number of
/// open rows is limited.
class RowPacker {
 public:
  /// `length` is the length of rows, and `window` the maximum number of open rows. Both must be at
  /// least 1.
  RowPacker(std::int64_t length, std::int64_t window) : length_(length), window_(window) {}

  /// Adds a sequence of 1 to `length` tokens to an open row. If this row is now full, closes and
  /// returns it. If no row has room and no further row may be opened, closes and returns the oldest
  /// row, and opens a new row. Otherwise returns nothing.
  std::optional<PackedRow> add(const PackedSequence& sequence);
  /// Closes the oldest open row and returns it. Returns nothing if no row is open.
  std::optional<PackedRow> close();

 private:
  struct Open {
    PackedRow sequences{};
    std::int64_t room = 0;
  };
  std::int64_t length_;
  std::int64_t window_;
  std::deque<Open> open_;  // the oldest comes first
};

/// The range of an item's tokens that are packed.
struct TokenRun {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

/// Describes which fields of the source are packed, and the fields of a packed row.
class PackedFields {
 public:
  /// `name` is the name of the packed dataset. Throws invalid_argument for options that don't fit
  /// the source.
  PackedFields(const std::string& name, const std::vector<Field>& source,
               const PackOptions& options);

  /// Returns the fields of a packed row: the packed fields, followed by segment ids and positions.
  const std::vector<Field>& fields() const { return fields_; }
  /// Returns the tokens of an item that are packed. Throws corrupt if the tokens in the item's mask
  /// aren't contiguous or their number is impossible. Also throws like packed_length().
  TokenRun run_of(ItemMemory item) const;
  /// Returns how many tokens of an item with `length` tokens are packed. Throws invalid_argument if
  /// the item is too long.
  std::int64_t packed_length(std::int64_t length) const;
  /// Returns, for each packed field, the memory of the run in the item.
  std::vector<std::span<std::byte>> run_memory(ItemMemory item, const TokenRun& run) const;
  /// Returns, for each packed field, a copy of the run's memory.
  ItemBuffer copy_of_run(ItemMemory item, const TokenRun& run) const;

 private:
  friend class PackedRowWriter;
  struct Packed {
    std::size_t source = 0;         // index of the field in the source
    std::size_t token_bytes = 0;    // size of one token in bytes
    std::vector<std::byte> fill{};  // the fill value, as one element
  };
  void add(const std::vector<Field>& source, std::size_t number, const PackOptions& options);

  std::string name_;
  std::int64_t length_;
  bool cut_long_;
  std::size_t length_field_ = 0;
  std::int64_t source_length_ = 0;  // T of the source's fields, whose shapes are [T, ...]
  bool has_mask_ = false;
  std::vector<Packed> packed_;
  std::vector<Field> fields_;
};

/// Fills the memory of one row.
class PackedRowWriter {
 public:
  PackedRowWriter(const PackedFields& fields, ItemMemory out) : fields_(fields), out_(out) {}

  /// Appends a sequence of `length` tokens. `run` has the sequence's memory for each packed field.
  void append(ItemMemory run, std::int64_t length);
  /// Fills the rest of the row after the last sequence.
  void finish();

 private:
  std::span<std::int32_t> numbers(std::size_t behind_packed) const;

  const PackedFields& fields_;
  const ItemMemory out_;
  std::int64_t used_ = 0;
  std::int32_t segment_ = 0;
};

}  // namespace weft
