#include <weft/data/sampler.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/items/alias_table.hpp"
#include "data/items/permutation.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

std::uint64_t as_unsigned(std::int64_t number) { return static_cast<std::uint64_t>(number); }

/// Returns the number of batches in an epoch of `size` items.
std::uint64_t count_steps(std::string_view sampler, std::int64_t size, std::int64_t batch_size,
                          bool drop_last) {
  if (size < 1) fail(Errc::invalid_argument, "{}: size = {}: expected 1 or more", sampler, size);
  if (batch_size < 1) {
    fail(Errc::invalid_argument, "{}: batch_size = {}: expected 1 or more", sampler, batch_size);
  }
  const std::int64_t whole = size / batch_size;
  if (drop_last && whole == 0) {
    fail(Errc::invalid_argument,
         "{}: batch_size = {} with {} items: no batch is full, and drop_last drops all items; use "
         "a smaller batch_size or drop_last = false",
         sampler, batch_size, size);
  }
  return as_unsigned(whole) + (!drop_last && size % batch_size != 0 ? 1 : 0);
}

std::int64_t place_of(std::uint64_t step_in_epoch, std::int64_t batch_size, std::int64_t row) {
  return static_cast<std::int64_t>(step_in_epoch) * batch_size + row;
}

PhiloxKey shuffle_key(std::uint64_t seed, std::uint64_t epoch) {
  return data_key(seed, DataStream::shuffle, epoch);
}

class EpochOrder : public SampleOrder {
 public:
  EpochOrder(const DistributedSamplerOptions& options, std::uint64_t epoch, std::uint64_t steps)
      : SampleOrder(epoch * steps, (epoch + 1) * steps), options_(options), epoch_(epoch) {
    if (options.shuffle) shuffle_.emplace(options.size, shuffle_key(options.seed, epoch));
  }

  Item item(std::uint64_t step, std::int64_t row) const override {
    const std::int64_t place = place_of(step - begin_step(), options_.batch_size, row);
    if (place >= options_.size) return {kNoItem, epoch_, options_.seed};
    return {shuffle_ ? (*shuffle_)[place] : place, epoch_, options_.seed};
  }

 private:
  const DistributedSamplerOptions options_;
  const std::uint64_t epoch_;
  std::optional<Shuffle> shuffle_;
};

class WeightedOrder : public SampleOrder {
 public:
  WeightedOrder(std::shared_ptr<const AliasTable> table, std::uint64_t begin_step,
                std::uint64_t end_step, std::int64_t batch_size, std::uint64_t seed)
      : SampleOrder(begin_step, end_step),
        table_(std::move(table)),
        batch_size_(batch_size),
        seed_(seed) {}

  Item item(std::uint64_t step, std::int64_t row) const override {
    const std::uint64_t draw = step * as_unsigned(batch_size_) + as_unsigned(row);
    WordSequence words(data_key(seed_, DataStream::weights, 0), draw);
    return {table_->draw(words), draw, seed_};
  }

 private:
  const std::shared_ptr<const AliasTable> table_;
  const std::int64_t batch_size_;
  const std::uint64_t seed_;
};

/// The order of the items in a window of batches. `items` has the items in the order of the
/// window's rows. The last batch of an epoch may be incomplete.
class WindowOrder : public SampleOrder {
 public:
  WindowOrder(std::uint64_t begin_step, std::uint64_t end_step, std::uint64_t epoch,
              std::shared_ptr<const LengthSamplerOptions> options, std::vector<std::int64_t> items)
      : SampleOrder(begin_step, end_step),
        epoch_(epoch),
        options_(std::move(options)),
        items_(std::move(items)) {}

  Item item(std::uint64_t step, std::int64_t row) const override {
    const auto place = as_unsigned(place_of(step - begin_step(), options_->batch_size, row));
    return {place < items_.size() ? items_[place] : kNoItem, epoch_, options_->seed};
  }
  std::int64_t length(std::uint64_t step, std::int64_t row) const override {
    const std::int64_t index = item(step, row).index;
    return index == kNoItem ? 0 : options_->lengths[as_unsigned(index)];
  }

 private:
  const std::uint64_t epoch_;
  const std::shared_ptr<const LengthSamplerOptions> options_;
  const std::vector<std::int64_t> items_;
};

/// Sorts items by length. With `shuffle`, then puts their batches in random order. The number of
/// items must be a multiple of the batch size.
std::vector<std::int64_t> sort_batches(std::vector<std::int64_t> items,
                                       const LengthSamplerOptions& options, PhiloxKey key) {
  std::ranges::stable_sort(items, {},
                           [&](std::int64_t i) { return options.lengths[as_unsigned(i)]; });
  const std::int64_t batches = static_cast<std::int64_t>(items.size()) / options.batch_size;
  if (!options.shuffle || batches == 0) return items;
  const Shuffle order(batches, key);
  std::vector<std::int64_t> shuffled;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const auto begin = items.begin() + order[batch] * options.batch_size;
    shuffled.insert(shuffled.end(), begin, begin + options.batch_size);
  }
  return shuffled;
}

}  // namespace

std::vector<Item> Sampler::batch(std::uint64_t step, std::int64_t replica,
                                 std::int64_t num_replicas) const {
  if (num_replicas < 1 || replica < 0 || replica >= num_replicas) {
    fail(Errc::invalid_argument,
         "replica = {}, num_replicas = {}: expected 0 or more, and less than num_replicas", replica,
         num_replicas);
  }
  // If the batch can't be divided evenly, the first replicas get one more row each.
  const std::int64_t least = batch_size() / num_replicas;
  const std::int64_t more = batch_size() % num_replicas;
  const std::int64_t begin = replica * least + std::min(replica, more);
  const std::int64_t end = begin + least + (replica < more ? 1 : 0);
  const SampleOrderPtr order = order_at(step);
  std::vector<Item> rows;
  for (std::int64_t row = begin; row < end; ++row) rows.push_back(order->item(step, row));
  return rows;
}

DistributedSampler::DistributedSampler(const DistributedSamplerOptions& options)
    : options_(options),
      steps_per_epoch_(
          count_steps("DistributedSampler", options.size, options.batch_size, options.drop_last)) {}

SampleOrderPtr DistributedSampler::order_at(std::uint64_t step) const {
  return std::make_shared<const EpochOrder>(options_, step / steps_per_epoch_, steps_per_epoch_);
}

WeightedSampler::WeightedSampler(const WeightedSamplerOptions& options)
    : table_(std::make_shared<const AliasTable>(options.weights)),
      batch_size_(options.batch_size),
      seed_(options.seed),
      steps_per_epoch_(count_steps("WeightedSampler",
                                   options.epoch_size == 0
                                       ? static_cast<std::int64_t>(options.weights.size())
                                       : options.epoch_size,
                                   options.batch_size, false)) {}

SampleOrderPtr WeightedSampler::order_at(std::uint64_t step) const {
  const std::uint64_t begin = step - step % steps_per_epoch_;
  return std::make_shared<const WeightedOrder>(table_, begin, begin + steps_per_epoch_, batch_size_,
                                               seed_);
}

LengthSampler::LengthSampler(LengthSamplerOptions options)
    : options_(std::make_shared<const LengthSamplerOptions>(std::move(options))),
      steps_per_epoch_(count_steps("LengthSampler",
                                   static_cast<std::int64_t>(options_->lengths.size()),
                                   options_->batch_size, options_->drop_last)) {
  if (options_->window_batches >= 1) return;
  fail(Errc::invalid_argument, "LengthSampler: window_batches = {}: expected 1 or more",
       options_->window_batches);
}

SampleOrderPtr LengthSampler::order_at(std::uint64_t step) const {
  const LengthSamplerOptions& options = *options_;
  const auto size = static_cast<std::int64_t>(options.lengths.size());
  const std::uint64_t epoch = step / steps_per_epoch_;
  const std::uint64_t window_steps = as_unsigned(options.window_batches);
  const std::uint64_t window = step % steps_per_epoch_ / window_steps;
  const std::uint64_t begin = window * window_steps;
  const std::uint64_t end = std::min(begin + window_steps, steps_per_epoch_);
  const std::uint64_t whole_end = std::min(end, as_unsigned(size / options.batch_size));

  std::vector<std::int64_t> items;
  const std::int64_t first = place_of(begin, options.batch_size, 0);
  const std::int64_t last = std::min(place_of(end, options.batch_size, 0), size);
  std::optional<Shuffle> shuffle;
  if (options.shuffle) shuffle.emplace(size, shuffle_key(options.seed, epoch));
  for (std::int64_t place = first; place < last; ++place) {
    items.push_back(shuffle ? (*shuffle)[place] : place);
  }
  const auto tail = items.begin() + place_of(whole_end - begin, options.batch_size, 0);
  std::vector<std::int64_t> rows =
      sort_batches({items.begin(), tail}, options,
                   data_key(options.seed, DataStream::window, epoch, low_word(window)));
  rows.insert(rows.end(), tail, items.end());
  const std::uint64_t epoch_begin = epoch * steps_per_epoch_;
  return std::make_shared<const WindowOrder>(epoch_begin + begin, epoch_begin + end, epoch,
                                             options_, std::move(rows));
}

}  // namespace weft
