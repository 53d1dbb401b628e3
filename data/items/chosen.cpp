/// Implements subset() and split().

#include "data/items/chosen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/permutation.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

class Range : public Dataset {
 public:
  Range(DatasetPtr source, std::int64_t begin, std::int64_t end)
      : source_(std::move(source)), begin_(begin), end_(end) {
    if (begin >= 0 && begin <= end && end <= source_->size()) return;
    fail(Errc::invalid_argument, "subset: items {} to {} of '{}' are out of range: it has {} items",
         begin, end, source_->name(), source_->size());
  }

  std::string name() const override {
    return fmt::format("subset({}, {}, {})", source_->name(), begin_, end_);
  }
  std::int64_t size() const override { return end_ - begin_; }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool is_sequential() const override { return source_->is_sequential(); }
  std::string item_path(std::int64_t index) const override {
    return source_->item_path(begin_ + index);
  }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    source_->read({begin_ + item.index, item.epoch, item.seed}, out);
  }

  const DatasetPtr source_;
  const std::int64_t begin_;
  const std::int64_t end_;
};

/// Returns a name that includes a digest of the indices. When a training resumes, the loader
/// compares names, and so notices whether the items have changed.
std::string name_of(std::string_view kind, const std::string& source,
                    std::span<const std::int64_t> indices) {
  const std::uint64_t digest = std::accumulate(
      indices.begin(), indices.end(), std::uint64_t{0}, [](std::uint64_t sum, std::int64_t index) {
        return inner_seed(sum, static_cast<std::uint64_t>(index));
      });
  return fmt::format("{}({}, {} items {:08x})", kind, source, indices.size(), low_word(digest));
}

class Chosen : public Dataset {
 public:
  Chosen(DatasetPtr source, std::vector<std::int64_t> indices, std::string_view kind)
      : source_(std::move(source)),
        indices_(std::move(indices)),
        name_(name_of(kind, source_->name(), indices_)) {
    for (const std::int64_t index : indices_) {
      if (index >= 0 && index < source_->size()) continue;
      fail(Errc::invalid_argument, "{}: item {} is out of range: there are {} items", name_, index,
           source_->size());
    }
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool is_sequential() const override { return source_->is_sequential(); }
  std::string item_path(std::int64_t index) const override {
    return source_->item_path(indices_[static_cast<std::size_t>(index)]);
  }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    source_->read({indices_[static_cast<std::size_t>(item.index)], item.epoch, item.seed}, out);
  }

  const DatasetPtr source_;
  const std::vector<std::int64_t> indices_;
  const std::string name_;
};

}  // namespace

DatasetPtr subset(DatasetPtr source, std::int64_t begin, std::int64_t end) {
  check_parts("subset", {&source, 1});
  return std::make_shared<const Range>(std::move(source), begin, end);
}

DatasetPtr subset(DatasetPtr source, std::vector<std::int64_t> indices) {
  return chosen_items(std::move(source), std::move(indices), "subset");
}

DatasetPtr chosen_items(DatasetPtr source, std::vector<std::int64_t> indices,
                        std::string_view kind) {
  check_parts(kind, {&source, 1});
  if (!std::ranges::is_sorted(indices)) {
    check_any_order(kind, {&source, 1}, "choose items in ascending order, without a shuffle");
  }
  return std::make_shared<const Chosen>(std::move(source), std::move(indices), kind);
}

std::vector<DatasetPtr> split(const DatasetPtr& source, const std::vector<double>& shares,
                              const SplitOptions& options) {
  check_parts("split", {&source, 1});
  double sum = 0;
  for (const double share : shares) {
    sum += share;
    if (share >= 0 && std::isfinite(sum)) continue;
    fail(Errc::invalid_argument, "split: share {}: expected finite numbers of at least 0", share);
  }
  if (!(sum > 0))
    fail(Errc::invalid_argument, "split: all shares of '{}' are 0: expected one above 0",
         source->name());
  const std::int64_t size = source->size();
  std::vector<DatasetPtr> parts;
  double until = 0;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    until += shares[i];
    const std::int64_t end = std::llround(until / sum * static_cast<double>(size));
    if (!options.shuffle_seed || begin == end) {
      parts.push_back(subset(source, begin, end));
    } else {
      const Shuffle shuffle(size, data_key(*options.shuffle_seed, DataStream::split, 0));
      std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
      std::iota(indices.begin(), indices.end(), begin);
      for (std::int64_t& index : indices) index = shuffle[index];
      parts.push_back(chosen_items(source, std::move(indices), "split"));
    }
    begin = end;
  }
  return parts;
}

}  // namespace weft
