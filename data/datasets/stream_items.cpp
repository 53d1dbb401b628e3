#include <mutex>
#include <utility>

#include <weft/data/stream.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/stream_rows.hpp"

namespace weft {
namespace {

class StreamItems : public Dataset {
 public:
  StreamItems(StreamPtr stream, std::int64_t size) : size_(size), rows_(std::move(stream)) {}

  std::string name() const override { return rows_.stream().name(); }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return rows_.stream().fields(); }
  bool is_sequential() const override { return true; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    const std::lock_guard lock(mutex_);
    rows_.seek(item.epoch * static_cast<std::uint64_t>(size_) +
               static_cast<std::uint64_t>(item.index));
    rows_.read(out);
  }

  const std::int64_t size_;
  mutable std::mutex mutex_;
  mutable StreamRows rows_;
};

}  // namespace

DatasetPtr stream_items(StreamPtr stream, std::int64_t items_per_epoch) {
  if (stream == nullptr) fail(Errc::invalid_argument, "stream_items: the stream is null");
  if (items_per_epoch < 1) {
    fail(Errc::invalid_argument, "stream_items: {}: items_per_epoch = {}: expected 1 or more",
         stream->name(), items_per_epoch);
  }
  return std::make_shared<const StreamItems>(std::move(stream), items_per_epoch);
}

}  // namespace weft
