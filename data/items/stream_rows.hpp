#pragma once
/// StreamRows: reads the numbered rows of a training from a stream.

#include <cstdint>

#include <weft/data/stream.hpp>

namespace weft {

/// The rows of a stream's epochs in sequence, numbered from 0. Any row can be reached, so that a
/// loop can continue at any step, but only moving forward is fast.
class StreamRows {
 public:
  explicit StreamRows(StreamPtr stream);

  const Stream& stream() const { return *stream_; }
  /// Returns the number of the row that read() will read next.
  std::uint64_t row() const { return row_; }
  /// Moves to a row: skips items, or restarts the stream to move back. Throws like Stream::skip(),
  /// and invalid_argument if an epoch has no items.
  void seek(std::uint64_t row);
  /// Reads the next row. Throws like Stream::next() and seek(). If read() fails, row() remains
  /// unchanged.
  void read(ItemMemory out);

 private:
  template <typename Function>
  void take(Function function);

  StreamPtr stream_;
  std::uint64_t row_ = 0;
  bool is_lost_ = false;  // true after an error: the stream's position is unknown
};

}  // namespace weft
