#pragma once
/// Chooses the sequences of each packed row, and fills its fields.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <weft/packing.hpp>

namespace weft {

/// A sequence of a row.
struct PackedSequence {
  std::int64_t number = 0;  ///< the caller's, for the sequence
  std::int64_t length = 0;
};
using PackedRow = std::vector<PackedSequence>;

/// First fit within a bounded window of open rows.
class RowPacker {
 public:
  /// Both are at least 1.
  RowPacker(std::int64_t length, std::int64_t window) : length_(length), window_(window) {}

  /// Adds a sequence of 1 to `length` tokens. Returns the row that is closed by it, if there is
  /// one: a row that is full, or the oldest where no row has room and the window is full.
  std::optional<PackedRow> add(const PackedSequence& sequence);
  /// Closes the oldest open row; nothing if there is none.
  std::optional<PackedRow> close();

 private:
  struct Open {
    PackedRow sequences{};
    std::int64_t room = 0;
  };
  std::int64_t length_;
  std::int64_t window_;
  std::deque<Open> open_;  // the oldest first
};

/// The tokens of an item, which lie side by side.
struct TokenRun {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

/// The fields of a source that are packed, and those of rows.
class PackedFields {
 public:
  /// `name` is the packed dataset's. Throws invalid_argument.
  PackedFields(const std::string& name, const std::vector<Field>& source,
               const PackOptions& options);

  /// The packed fields, the segment ids and the positions.
  const std::vector<Field>& fields() const { return fields_; }
  /// The tokens of an item that are packed. Throws corrupt for a mask whose tokens don't lie side
  /// by side and for an impossible number of them, and as packed_length().
  TokenRun run_of(ItemMemory item) const;
  /// The tokens that are packed of so many. Throws invalid_argument if there are too many.
  std::int64_t packed_length(std::int64_t length) const;
  /// The memory of a run in the packed fields of an item.
  std::vector<std::span<std::byte>> run_memory(ItemMemory item, const TokenRun& run) const;
  /// A copy of it.
  ItemBuffer copy_of_run(ItemMemory item, const TokenRun& run) const;

 private:
  friend class PackedRowWriter;
  struct Packed {
    std::size_t source = 0;         // number of the field in the source
    std::size_t token_bytes = 0;    // of one token
    std::vector<std::byte> fill{};  // an element
  };
  void add(const std::vector<Field>& source, std::size_t number, const PackOptions& options);

  std::string name_;
  std::int64_t length_;
  bool cut_long_;
  std::size_t length_field_ = 0;
  std::int64_t source_length_ = 0;  // T of [T, ...]
  bool has_mask_ = false;
  std::vector<Packed> packed_;
  std::vector<Field> fields_;
};

/// Fills the memory of one row.
class PackedRowWriter {
 public:
  PackedRowWriter(const PackedFields& fields, ItemMemory out) : fields_(fields), out_(out) {}

  /// `run` has the memory of a sequence of `length` tokens, for each packed field.
  void append(ItemMemory run, std::int64_t length);
  /// Fills up what is behind the last sequence.
  void finish();

 private:
  std::span<std::int32_t> numbers(std::size_t behind_packed) const;

  const PackedFields& fields_;
  const ItemMemory out_;
  std::int64_t used_ = 0;
  std::int32_t segment_ = 0;
};

}  // namespace weft
