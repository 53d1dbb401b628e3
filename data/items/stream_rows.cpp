#include "data/items/stream_rows.hpp"

#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

StreamRows::StreamRows(StreamPtr stream) : stream_(std::move(stream)) {
  if (!stream_) fail(Errc::invalid_argument, "StreamRows: the stream is null");
  is_lost_ = stream_->epoch() != 0 || stream_->index() != 0;
}

template <typename Function>
void StreamRows::take(Function function) {
  is_lost_ = true;
  while (!function()) {
    if (stream_->index() == 0) {
      fail(Errc::invalid_argument, "{}: epoch {} has no items", stream_->name(), stream_->epoch());
    }
    stream_->rewind(stream_->epoch() + 1);
  }
  is_lost_ = false;
  ++row_;
}

void StreamRows::seek(std::uint64_t row) {
  if (row < row_ || is_lost_) {
    is_lost_ = true;
    stream_->rewind(0);
    row_ = 0;
    is_lost_ = false;
  }
  while (row_ < row) {
    take([&] { return stream_->skip(); });
  }
}

void StreamRows::read(ItemMemory out) {
  if (is_lost_) seek(row_);
  take([&] { return stream_->next(out); });
}

}  // namespace weft
