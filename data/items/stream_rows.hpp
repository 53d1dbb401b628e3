#pragma once
/// StreamRows: reads the numbered rows of a training from a stream.

#include <cstdint>

#include <weft/data/stream.hpp>

namespace weft {

/// The rows of a stream's epochs in sequence, numbered from 0. A loop can continue at any step,
/// because any row can be reached. Only moving forward is fast.
class StreamRows {
 public:
  explicit StreamRows(StreamPtr stream);

  const Stream& stream() const { return *stream_; }
  /// Returns the number of the row that read() will read next.
  std::uint64_t row() const { return row_; }
  /// Moves to a row: skips items, or restarts the stream to move back. Throws as Stream::skip(),
  /// and invalid_argument for an epoch without items.
  void seek(std::uint64_t row);
  /// Reads the next row. Throws as Stream::next() and as seek() do. If read() fails, row() remains
  /// unchanged.
  void read(ItemMemory out);

 private:
  template <typename Function>
  void take(Function function);

  StreamPtr stream_;
  std::uint64_t row_ = 0;
  bool is_lost_ = false;  // after an error the stream's position is unknown
};

}  // namespace weft
