#include <weft/data/stream.hpp>

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/items/item_reading.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

class ShuffleBuffer : public Stream {
 public:
  ShuffleBuffer(StreamPtr source, std::int64_t size, std::uint64_t seed)
      : source_(std::move(source)), size_(static_cast<std::size_t>(size)), seed_(seed), words_({}) {
    rewind_items();
  }

  std::string name() const override {
    return fmt::format("shuffle_buffer({}, {}{})", source_->name(), size_,
                       seed_ == 0 ? "" : fmt::format(", seed {}", seed_));
  }
  const std::vector<Field>& fields() const override { return source_->fields(); }

 private:
  bool next_item(ItemMemory out) override {
    return draw([&](const ItemBuffer& drawn) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::ranges::copy(drawn.memory()[i], out[i].begin());
      }
    });
  }
  bool skip_item() override {
    return draw([](const ItemBuffer&) {});
  }
  void rewind_items() override {
    source_->rewind(epoch());
    words_ = WordSequence(data_key(seed_, DataStream::buffer, epoch()));
    held_ = 0;
    is_ended_ = false;
  }

  template <typename Use>
  bool draw(Use use) {
    while (!is_ended_ && held_ < size_) {
      if (held_ == slots_.size()) slots_.emplace_back(source_->fields());
      fill(held_, held_ + 1);
    }
    if (held_ == 0) return false;
    const auto drawn = static_cast<std::size_t>(number_below(words_, held_));
    use(slots_[drawn]);
    if (is_ended_ || !fill(drawn, held_)) std::swap(slots_[drawn], slots_[--held_]);
    return true;
  }
  /// Reads the next item into the slot and sets `held_` to `held`. Returns false if there is no
  /// next item.
  bool fill(std::size_t slot, std::size_t held) {
    is_ended_ = !source_->next(slots_[slot].memory());
    if (!is_ended_) held_ = held;
    return !is_ended_;
  }

  const StreamPtr source_;
  const std::size_t size_;
  const std::uint64_t seed_;
  WordSequence words_;
  std::vector<ItemBuffer> slots_;  // the first held_ slots have an item
  std::size_t held_ = 0;
  bool is_ended_ = false;  // whether the source has ended
};

}  // namespace

template <typename Function>
bool Stream::take(Function function) {
  const bool taken = read_named(*this, Item{.index = index_, .epoch = epoch_}, std::move(function));
  if (taken) ++index_;
  return taken;
}

bool Stream::next(ItemMemory out) {
  check_memory(*this, out);
  return take([&] { return next_item(out); });
}

bool Stream::skip() {
  return take([&] { return skip_item(); });
}

void Stream::rewind(std::uint64_t epoch) {
  epoch_ = epoch;
  index_ = 0;
  rewind_items();
}

StreamPtr shuffle_buffer(StreamPtr source, std::int64_t size, std::uint64_t seed) {
  if (!source) fail(Errc::invalid_argument, "shuffle_buffer: the source is null");
  constexpr std::int64_t kSizeMax = std::int64_t{1} << 31;
  if (size < 1 || size > kSizeMax) {
    fail(Errc::invalid_argument, "shuffle_buffer: size = {}: expected 1 to 2^31", size);
  }
  return std::make_unique<ShuffleBuffer>(std::move(source), size, seed);
}

}  // namespace weft
