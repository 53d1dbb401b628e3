#pragma once
/// A dataset with known elements that records which of its items are read.

#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/data/dataset.hpp>

namespace weft::testing {

/// A dataset whose fields are f32 tensors named "x0", "x1", and so on.
class Numbered : public Dataset {
 public:
  /// `items` are the shapes of the fields. Reading an item whose number is in `broken` throws.
  Numbered(std::int64_t size, const std::vector<Shape>& items, std::set<std::int64_t> broken = {})
      : size_(size), broken_(std::move(broken)) {
    for (std::size_t f = 0; f < items.size(); ++f) {
      fields_.push_back({"x" + std::to_string(f), {DType::f32, items[f]}});
    }
  }
  static float element(std::int64_t item, std::size_t field, std::int64_t i) {
    return static_cast<float>(item * 100 + static_cast<std::int64_t>(field) * 50 + i);
  }

  std::string name() const override { return "numbered"; }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }

  std::multiset<std::int64_t> reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    {
      const std::lock_guard lock(mutex_);
      reads_.insert(item.index);
    }
    if (broken_.contains(item.index)) throw std::runtime_error("broken");
    const ItemWriter writer(fields_, out);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const auto to = writer.get<float>(f);
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = element(item.index, f, static_cast<std::int64_t>(i));
      }
    }
  }

  const std::int64_t size_;
  const std::set<std::int64_t> broken_;
  std::vector<Field> fields_;
  mutable std::mutex mutex_;
  mutable std::multiset<std::int64_t> reads_;
};

}  // namespace weft::testing
