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

/// Packs sequences into rows by first fit within a bounded window of open rows.
class RowPacker {
 public:
  /// `length` and `window` are at least 1.
  RowPacker(std::int64_t length, std::int64_t window) : length_(length), window_(window) {}

  /// Adds a sequence of 1 to `length` tokens to an open row. If this row is now full, closes and
  /// returns it. If no row has room and the window is full, closes and returns the oldest row, and
  /// opens a new one. Otherwise returns nothing.
  std::optional<PackedRow> add(const PackedSequence& sequence);
  /// Closes the oldest open row and returns it; returns nothing if there is none.
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

/// The contiguous tokens of an item that are packed.
struct TokenRun {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

/// Describes the source's fields that are packed, and the fields of a packed row.
class PackedFields {
 public:
  /// `name` is the name of the packed dataset. Throws invalid_argument for options that don't fit
  /// the source.
  PackedFields(const std::string& name, const std::vector<Field>& source,
               const PackOptions& options);

  /// Returns the packed fields, then the segment ids and the positions.
  const std::vector<Field>& fields() const { return fields_; }
  /// Returns the tokens of an item that are packed. Throws corrupt for a mask whose tokens aren't
  /// contiguous and for an impossible number of tokens. Also throws as packed_length() does.
  TokenRun run_of(ItemMemory item) const;
  /// Returns how many of `length` tokens are packed. Throws invalid_argument if there are too many.
  std::int64_t packed_length(std::int64_t length) const;
  /// Returns the memory of the run in each packed field of an item.
  std::vector<std::span<std::byte>> run_memory(ItemMemory item, const TokenRun& run) const;
  /// Returns a copy of the run's memory in each packed field.
  ItemBuffer copy_of_run(ItemMemory item, const TokenRun& run) const;

 private:
  friend class PackedRowWriter;
  struct Packed {
    std::size_t source = 0;         // number of the field in the source
    std::size_t token_bytes = 0;    // bytes of one token
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
