#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"

namespace weft {
namespace {

/// Keeps items of the source in slots, one for each index. A slot is null until a thread publishes
/// an item in it, and then never changes.
class Cached : public Dataset {
 public:
  Cached(DatasetPtr source, std::int64_t bytes_max)
      : source_(std::move(source)),
        name_(name_of_parts("cached", {&source_, 1})),
        slots_(static_cast<std::size_t>(source_->size())) {
    for (const Field& field : source_->fields()) item_bytes_ += field.type.bytes();
    if (item_bytes_ > bytes_max || item_bytes_ < 1) {
      fail(Errc::invalid_argument,
           "{}: bytes_max = {}: expected at least {}, the number of bytes of an item", name_,
           bytes_max, item_bytes_);
    }
    room_ = bytes_max / item_bytes_;
  }
  Cached(const Cached&) = delete;
  Cached& operator=(const Cached&) = delete;
  ~Cached() override {
    for (const auto& slot : slots_) delete[] slot.load(std::memory_order_relaxed);
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool is_sequential() const override { return source_->is_sequential(); }
  std::string item_path(std::int64_t index) const override { return source_->item_path(index); }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    std::atomic<std::byte*>& slot = slots_[static_cast<std::size_t>(item.index)];
    if (const std::byte* held = slot.load(std::memory_order_acquire)) {
      for (const std::span<std::byte> field : out) {
        std::copy_n(held, field.size(), field.begin());
        held += field.size();
      }
      return;
    }
    source_->read({.index = item.index}, out);
    if (room_.fetch_sub(1, std::memory_order_relaxed) <= 0 || !keep(slot, out)) {
      room_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  /// Stores the item in the slot. Returns false if another thread has already filled the slot.
  bool keep(std::atomic<std::byte*>& slot, ItemMemory item) const {
    auto kept = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(item_bytes_));
    std::byte* to = kept.get();
    for (const std::span<std::byte> field : item) to = std::ranges::copy(field, to).out;
    std::byte* none = nullptr;
    // The release order makes the item's bytes visible to threads that find the item in the slot.
    if (!slot.compare_exchange_strong(none, kept.get(), std::memory_order_release,
                                      std::memory_order_relaxed)) {
      return false;
    }
    (void)kept.release();
    return true;
  }

  const DatasetPtr source_;
  const std::string name_;
  std::int64_t item_bytes_ = 0;
  mutable std::atomic<std::int64_t> room_{0};  // number of further items that may be kept
  mutable std::vector<std::atomic<std::byte*>> slots_;
};

}  // namespace

DatasetPtr cached(DatasetPtr source, std::int64_t bytes_max) {
  check_parts("cached", {&source, 1});
  return std::make_shared<const Cached>(std::move(source), bytes_max);
}

}  // namespace weft
