#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/permutation.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

/// Returns the number of items of each part in a block. Rounds the shares down, and then adds an
/// item for each of the parts that lost most by rounding, so that the numbers add up to kMixBlock.
std::vector<std::uint64_t> block_counts(std::span<const double> weights,
                                        std::span<const DatasetPtr> parts) {
  if (weights.size() != parts.size()) {
    fail(Errc::invalid_argument, "mix: {} weights are given for {} parts", weights.size(),
         parts.size());
  }
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
    if (weight > 0 && std::isfinite(sum)) continue;
    fail(Errc::invalid_argument, "mix: weight {}: expected finite numbers above 0", weight);
  }
  std::vector<std::uint64_t> counts;
  std::vector<double> lost;
  for (const double weight : weights) {
    const double share = weight / sum * static_cast<double>(kMixBlock);
    counts.push_back(static_cast<std::uint64_t>(share));
    lost.push_back(share - std::floor(share));
  }
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return lost[i]; });
  std::uint64_t left = kMixBlock - std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (std::size_t i = 0; left > 0; --left, ++i) ++counts[order[i % order.size()]];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) continue;
    fail(Errc::invalid_argument, "mix: weight {} of '{}' gives less than one item in {}",
         weights[i], parts[i]->name(), kMixBlock);
  }
  return counts;
}

/// Returns a name that includes the options. When a training resumes, the loader compares names,
/// and so notices whether the mix has changed.
std::string name_of(std::span<const DatasetPtr> parts, std::span<const double> weights,
                    const MixOptions& options) {
  return fmt::format("{} by {:g}{}", name_of_parts("mix", parts), fmt::join(weights, ":"),
                     options.shuffle ? "" : ", in order");
}

class Mix : public Dataset {
 public:
  Mix(std::vector<DatasetPtr> parts, std::span<const double> weights, const MixOptions& options)
      : parts_(std::move(parts)),
        counts_(block_counts(weights, parts_)),
        name_(name_of(parts_, weights, options)),
        size_(options.size),
        shuffle_(options.shuffle) {
    std::uint64_t end = 0;
    for (const std::uint64_t count : counts_) ends_.push_back(end += count);
    for (const DatasetPtr& part : parts_) {
      if (part->size() < 1) {
        fail(Errc::invalid_argument, "{}: '{}' has no items", name_, part->name());
      }
      if (options.size == 0) size_ += part->size();
    }
    if (size_ < 1) fail(Errc::invalid_argument, "{}: size = {}: expected 1 or more", name_, size_);
  }

  std::string name() const override { return name_; }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return parts_[0]->fields(); }
  bool is_sequential() const override { return is_any_sequential(parts_); }

 private:
  /// The mix is an endless sequence of blocks. Each epoch is a piece of this sequence. Each part
  /// has a range of the places in a block, and the places of a block are read in random order.
  void read_item(const Item& item, ItemMemory out) const override {
    const std::uint64_t at =
        item.epoch * static_cast<std::uint64_t>(size_) + static_cast<std::uint64_t>(item.index);
    const std::uint64_t block = at / kMixBlock;
    const KeyedPermutation places(kMixBlock, data_key(item.seed, DataStream::mix_blocks, block));
    const auto place =
        static_cast<std::uint64_t>(places[static_cast<std::int64_t>(at % kMixBlock)]);
    const auto part =
        static_cast<std::size_t>(std::ranges::upper_bound(ends_, place) - ends_.begin());
    const std::uint64_t drawn = block * counts_[part] + (place - (ends_[part] - counts_[part]));
    const std::int64_t part_size = parts_[part]->size();
    const std::uint64_t pass = drawn / static_cast<std::uint64_t>(part_size);
    auto index = static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(part_size));
    if (shuffle_) {
      const PhiloxKey key =
          data_key(item.seed, DataStream::mix_part, pass, static_cast<std::uint32_t>(part));
      index = KeyedPermutation(part_size, key)[index];
    }
    parts_[part]->read({index, pass, inner_seed(item.seed, part)}, out);
  }

  const std::vector<DatasetPtr> parts_;
  const std::vector<std::uint64_t> counts_;  // number of each part's items in a block
  const std::string name_;
  std::int64_t size_;
  const bool shuffle_;
  std::vector<std::uint64_t> ends_;  // for each part, the end of its range of places
};

}  // namespace

DatasetPtr mix(std::vector<DatasetPtr> parts, const std::vector<double>& weights,
               const MixOptions& options) {
  check_alike("mix", parts);
  if (options.shuffle) {
    check_any_order("mix", parts, "set shuffle = false, and shuffle the part by shuffle_buffer()");
  }
  return std::make_shared<const Mix>(std::move(parts), weights, options);
}

}  // namespace weft
