#pragma once
/// StreamRows: the rows of a training on a stream, by number.

#include <cstdint>

#include <weft/stream.hpp>

namespace weft {

/// The epochs of a stream one behind the other, numbered from 0 on. Any row
/// can be reached, so that a loop can go on at any step; only forward in little time.
class StreamRows {
 public:
  explicit StreamRows(StreamPtr stream);

  const Stream& stream() const { return *stream_; }
  /// The number of the row that read() will give.
  std::uint64_t row() const { return row_; }
  /// Skips items, or begins anew. Throws as Stream::skip(), and invalid_argument for an epoch
  /// without items.
  void seek(std::uint64_t row);
  /// Throws as Stream::next(), and as seek(). After an error of read() row() is what it was.
  void read(ItemMemory out);

 private:
  template <typename Function>
  void take(Function function);

  StreamPtr stream_;
  std::uint64_t row_ = 0;
  bool is_lost_ = false;  // an error has left the stream somewhere
};

}  // namespace weft
