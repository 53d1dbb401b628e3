/// Implements zip() and concat().

#include <algorithm>
#include <utility>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

class Zip : public Dataset {
 public:
  explicit Zip(std::vector<DatasetPtr> parts)
      : parts_(std::move(parts)), name_(name_of_parts("zip", parts_)) {
    for (const DatasetPtr& part : parts_) {
      if (part->size() != size()) {
        fail(Errc::invalid_argument, "{}: '{}' has {} items, but '{}' has {}", name_,
             parts_[0]->name(), size(), part->name(), part->size());
      }
      fields_.insert(fields_.end(), part->fields().begin(), part->fields().end());
    }
    check_fields(name_, fields_);
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return parts_[0]->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool is_sequential() const override { return is_any_sequential(parts_); }
  std::string item_path(std::int64_t index) const override {
    for (const DatasetPtr& part : parts_) {
      if (std::string path = part->item_path(index); !path.empty()) return path;
    }
    return {};
  }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    for (const DatasetPtr& part : parts_) {
      const std::size_t count = part->fields().size();
      part->read(item, out.first(count));
      out = out.subspan(count);
    }
  }

  const std::vector<DatasetPtr> parts_;
  const std::string name_;
  std::vector<Field> fields_;
};

class Concat : public Dataset {
 public:
  explicit Concat(std::vector<DatasetPtr> parts)
      : parts_(std::move(parts)), name_(name_of_parts("concat", parts_)) {
    for (const DatasetPtr& part : parts_) ends_.push_back(size() + part->size());
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<Field>& fields() const override { return parts_[0]->fields(); }
  bool is_sequential() const override { return is_any_sequential(parts_); }
  std::string item_path(std::int64_t index) const override {
    const auto [part, begin] = part_of(index);
    return parts_[part]->item_path(index - begin);
  }

 private:
  /// Returns the number of the part that has the item, and the index of the first item of this
  /// part.
  std::pair<std::size_t, std::int64_t> part_of(std::int64_t index) const {
    const auto part =
        static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {part, part == 0 ? 0 : ends_[part - 1]};
  }

  void read_item(const Item& item, ItemMemory out) const override {
    const auto [part, begin] = part_of(item.index);
    parts_[part]->read({item.index - begin, item.epoch, inner_seed(item.seed, part)}, out);
  }

  const std::vector<DatasetPtr> parts_;
  const std::string name_;
  std::vector<std::int64_t> ends_;  // index after the last item of each part
};

}  // namespace

DatasetPtr zip(std::vector<DatasetPtr> parts) {
  check_parts("zip", parts);
  return std::make_shared<const Zip>(std::move(parts));
}

DatasetPtr concat(std::vector<DatasetPtr> parts) {
  check_alike("concat", parts);
  return std::make_shared<const Concat>(std::move(parts));
}

}  // namespace weft
