#pragma once
/// Packing: sequences of unequal lengths side by side in rows of one length, so that little of a
/// batch is padding. AttentionOptions::segment_ids keeps them apart.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/stream.hpp>

namespace weft {

// The fields that packing adds.
inline constexpr const char* kSegmentIdsField = "segment_ids";
inline constexpr const char* kPositionsField = "positions";

struct PackOptions {
  std::int64_t length = 0;  ///< tokens of a row
  /// The field of the source that says how long an item's sequence is: pred[T], true for its
  /// tokens, which lie side by side (TokenField::mask), or i32[], their number.
  std::string length_field = "mask";
  /// The fields that are packed, each [T, ...]. Default: all but length_field.
  std::vector<std::string> fields{};
  /// The value behind the last sequence of a row, by field: {"targets", -100}. Default: 0.
  std::map<std::string, double> fill{};
  /// The tokens of a longer sequence beyond `length` are left out. Otherwise it is an error.
  bool cut_long = false;
  /// A sequence goes to the first of so many open rows that has room. If none has, the oldest one
  /// is closed.
  std::int64_t window = 64;
  /// The number of tokens of each item. Default: all items are read once to count them. For a
  /// dataset only.
  std::vector<std::int64_t> lengths{};
  /// The sequences are packed in an order that is a function of this number. Default: in that of
  /// the source. For a dataset only; a stream has shuffle_buffer().
  std::optional<std::uint64_t> shuffle_seed{};
};

/// Rows of sequences: the packed fields, [length, ...], and then two fields i32[length]: segment
/// ids, 1, 2, ... for the sequences of a row and 0 for padding, and positions, of each token in its
/// sequence, from 0 on. A sequence without tokens is left out.
///
/// The rows are made here, once, so that an epoch has as many as the others: items are read for
/// epoch 0 and seed 0, and 16 bytes are kept for each. An item that has another length in another
/// epoch is corrupt. DeviceLoader's `shuffle` gives rows another order in each epoch; the metric
/// LoaderPadding is the share of padding. Throws invalid_argument for options that don't fit the
/// source, for a sequence that is too long, and for a sequential source, which is packed as a
/// stream; corrupt for a mask whose tokens don't lie side by side.
DatasetPtr pack_sequences(DatasetPtr source, const PackOptions& options);

/// The same rows of the items of each epoch of a stream, whose number is found as they are read.
/// Sequences of `window` rows are held in memory.
StreamPtr pack_sequences(StreamPtr source, const PackOptions& options);

}  // namespace weft
