#pragma once
/// Packing: puts sequences of different lengths one after another in rows of equal length, so that
/// a batch has little padding. With AttentionOptions::segment_ids, tokens attend only to their own
/// sequence.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/data/stream.hpp>

namespace weft {

// The fields that packing adds.
inline constexpr const char* kSegmentIdsField = "segment_ids";
inline constexpr const char* kPositionsField = "positions";

struct PackOptions {
  std::int64_t length = 0;  ///< the number of tokens in a row
  /// The field of the source that tells the length of an item's sequence. It is either a pred[T]
  /// that is true for the item's tokens, which must be adjacent (TokenField::mask), or an i32[]
  /// with the number of tokens.
  std::string length_field = "mask";
  /// The fields that are packed, each [T, ...]. Default: all but length_field.
  std::vector<std::string> fields{};
  /// The value after the last sequence of a row, by field, such as {"targets", -100}. Default: 0.
  std::map<std::string, double> fill{};
  /// If true, the tokens of a sequence beyond `length` are left out; otherwise such a sequence is
  /// an error.
  bool cut_long = false;
  /// The number of open rows. A sequence goes to the first open row that has room. If no row has
  /// room, the oldest row is closed.
  std::int64_t window = 64;
  /// The number of tokens of each item. Default: all items are read once to count them. Not for a
  /// stream.
  std::vector<std::int64_t> lengths{};
  /// If set, the sequences are packed in a random order that is a function of this number. Default:
  /// the order of the source. Not for a stream; use shuffle_buffer() there.
  std::optional<std::uint64_t> shuffle_seed{};
};

/// Packs sequences into rows. A row has the packed fields, [length, ...], and then two fields
/// i32[length]: segment ids, which are 1, 2, ... for the sequences of a row and 0 for padding, and
/// the position of each token in its sequence, from 0. A sequence without tokens is left out.
///
/// The rows are made once, in this call, so that all epochs have the same number of rows. For this
/// the items are read for epoch 0 and seed 0, and 16 bytes are kept for each. An item whose length
/// differs in another epoch throws corrupt. DeviceLoader's `shuffle` gives rows another order in
/// each epoch; the metric LoaderPadding is the share of padding. Throws invalid_argument for
/// options that don't fit the source, for a sequence that is too long, and for a sequential source,
/// which must be packed as a stream; corrupt for a mask whose tokens aren't adjacent.
DatasetPtr pack_sequences(DatasetPtr source, const PackOptions& options);

/// Packs the items of each epoch of a stream in the same way. The number of rows is known only
/// after the items are read. The sequences of `window` open rows are held in memory.
StreamPtr pack_sequences(StreamPtr source, const PackOptions& options);

}  // namespace weft
