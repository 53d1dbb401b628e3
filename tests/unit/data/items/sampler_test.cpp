#include <weft/data/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::sampler_test {
namespace {

using testing::expect_error;

std::vector<std::int64_t> indices_of(const std::vector<Item>& items) {
  std::vector<std::int64_t> indices;
  for (const Item& item : items) indices.push_back(item.index);
  return indices;
}

/// Returns the items of an epoch in order, without the rows that only pad batches.
std::vector<std::int64_t> epoch_of(const Sampler& sampler, std::uint64_t epoch) {
  std::vector<std::int64_t> indices;
  const std::uint64_t begin = epoch * sampler.steps_per_epoch();
  SampleOrderPtr order = sampler.order_at(begin);
  for (std::uint64_t step = begin; step < begin + sampler.steps_per_epoch(); ++step) {
    if (!order->has(step)) order = sampler.order_at(step);
    for (std::int64_t row = 0; row < sampler.batch_size(); ++row) {
      const Item item = order->item(step, row);
      EXPECT_EQ(item.epoch, epoch);
      if (item.index != kNoItem) indices.push_back(item.index);
    }
  }
  return indices;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> indices) {
  std::ranges::sort(indices);
  return indices;
}

bool is_all_of(const std::vector<std::int64_t>& indices, std::int64_t size) {
  const std::vector<std::int64_t> order = sorted(indices);
  if (static_cast<std::int64_t>(order.size()) != size) return false;
  for (std::int64_t i = 0; i < size; ++i) {
    if (order[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

TEST(DistributedSampler, HasEachItemOnceInEachEpoch) {
  for (const std::int64_t size : {1, 2, 5, 64, 300, 70'000}) {
    for (const std::int64_t batch_size : {1, 3, 64}) {
      for (const bool shuffle : {false, true}) {
        const DistributedSampler sampler(
            {.size = size, .batch_size = batch_size, .shuffle = shuffle, .drop_last = false});
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
          EXPECT_TRUE(is_all_of(epoch_of(sampler, epoch), size)) << size << ", " << batch_size;
        }
      }
    }
  }
}

TEST(DistributedSampler, DropsWhatFillsNoBatchOrFillsItUp) {
  const DistributedSampler drops({.size = 10, .batch_size = 4});
  EXPECT_EQ(drops.steps_per_epoch(), 2U);
  std::set<std::int64_t> dropped;
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<std::int64_t> there = epoch_of(drops, epoch);
    EXPECT_EQ(std::set(there.begin(), there.end()).size(), 8U);
    for (std::int64_t i = 0; i < 10; ++i) {
      if (std::ranges::find(there, i) == there.end()) dropped.insert(i);
    }
  }
  EXPECT_EQ(dropped.size(), 10U);  // each epoch drops different items

  const DistributedSampler fills(
      {.size = 10, .batch_size = 4, .shuffle = false, .drop_last = false});
  EXPECT_EQ(fills.steps_per_epoch(), 3U);
  EXPECT_EQ(indices_of(fills.batch(2)), (std::vector<std::int64_t>{8, 9, kNoItem, kNoItem}));
  EXPECT_EQ(indices_of(fills.batch(3)), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(DistributedSampler, EveryEpochAndSeedHasAnOrderOfItsOwn) {
  std::set<std::vector<std::int64_t>> orders;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const DistributedSampler sampler({.size = 50, .batch_size = 50, .seed = seed});
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) orders.insert(epoch_of(sampler, epoch));
  }
  EXPECT_EQ(orders.size(), 100U);
}

TEST(DistributedSampler, ReplicasDivideTheBatchOfOne) {
  const DistributedSampler sampler({.size = 1000, .batch_size = 12, .seed = 3});
  for (const std::uint64_t step : {0U, 1U, 82U, 83U, 5000U}) {
    const std::vector<Item> whole = sampler.batch(step);
    for (std::int64_t replicas = 1; replicas <= 14; ++replicas) {
      std::vector<Item> together;
      for (std::int64_t replica = 0; replica < replicas; ++replica) {
        const std::vector<Item> rows = sampler.batch(step, replica, replicas);
        EXPECT_LE(static_cast<std::int64_t>(rows.size()), (12 + replicas - 1) / replicas);
        together.insert(together.end(), rows.begin(), rows.end());
      }
      EXPECT_EQ(together, whole) << step << ", " << replicas;
    }
  }
  expect_error(Errc::invalid_argument, {"replica = 2, num_replicas = 2"},
               [&] { (void)sampler.batch(0, 2, 2); });
}

TEST(DistributedSampler, GoesOnAtAnyStep) {
  for (const std::int64_t size : {100, 100'000}) {
    const DistributedSamplerOptions options{.size = size, .batch_size = 7, .seed = 11};
    const DistributedSampler first(options);
    std::vector<std::vector<Item>> undisturbed;
    SampleOrderPtr order = first.order_at(0);
    for (std::uint64_t step = 0; step < 40; ++step) {
      if (!order->has(step)) order = first.order_at(step);
      std::vector<Item>& rows = undisturbed.emplace_back();
      for (std::int64_t row = 0; row < 7; ++row) rows.push_back(order->item(step, row));
    }
    for (std::uint64_t step = 40; step-- > 0;) {
      EXPECT_EQ(DistributedSampler(options).batch(step), undisturbed[step]) << step;
    }
  }
}

TEST(DistributedSampler, RefusesImpossibleSizes) {
  expect_error(Errc::invalid_argument, {"size = 0"}, [] { DistributedSampler({.size = 0}); });
  expect_error(Errc::invalid_argument, {"batch_size = 0"},
               [] { DistributedSampler({.size = 3, .batch_size = 0}); });
  expect_error(Errc::invalid_argument, {"batch_size = 4 with 3 items", "drop_last = false"},
               [] { DistributedSampler({.size = 3, .batch_size = 4}); });
}

TEST(WeightedSampler, DrawsAsOftenAsTheWeightsSay) {
  const std::vector<double> weights{1, 0, 3, 0.5, 0, 5.5};
  const WeightedSampler sampler({.weights = weights, .batch_size = 100, .seed = 1});
  std::vector<double> counts(weights.size());
  const int steps = 1000;
  for (std::uint64_t step = 0; step < steps; ++step) {
    for (const Item& item : sampler.batch(step)) ++counts[static_cast<std::size_t>(item.index)];
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / 10;
    const double deviation = std::sqrt(steps * 100 * share * (1 - share));
    EXPECT_NEAR(counts[i], steps * 100 * share, 4 * deviation) << i;
  }
}

TEST(WeightedSampler, NeverDrawsAWeightOfZero) {
  std::vector<double> weights(1000);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 7 == 0 ? 0 : 0.1;
  const WeightedSampler sampler({.weights = weights, .batch_size = 100'000});
  for (const Item& item : sampler.batch(0)) EXPECT_NE(item.index % 7, 0);
  const WeightedSampler one({.weights = {0, 1e308, 1e-308, 0}, .batch_size = 1000});
  for (const Item& item : one.batch(0)) EXPECT_EQ(item.index, 1);
}

TEST(WeightedSampler, TellsDrawsOfOneItemApartAndGoesOnAtAnyStep) {
  const WeightedSamplerOptions options{.weights = {1}, .batch_size = 3};
  const WeightedSampler sampler(options);
  EXPECT_EQ(sampler.steps_per_epoch(), 1U);
  std::set<std::uint64_t> draws;
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (const Item& item : sampler.batch(step)) draws.insert(item.epoch);
    EXPECT_EQ(sampler.batch(step), WeightedSampler(options).batch(step));
  }
  EXPECT_EQ(draws.size(), 12U);
}

TEST(WeightedSampler, RefusesWeights) {
  expect_error(Errc::invalid_argument, {"all 2 weights are 0"}, [] {
    WeightedSampler({.weights = {0, 0}});
  });
  expect_error(Errc::invalid_argument, {"all 0 weights"}, [] { WeightedSampler({}); });
  expect_error(Errc::invalid_argument, {"weights[1] = -1"}, [] {
    WeightedSampler({.weights = {1, -1}});
  });
  expect_error(Errc::invalid_argument, {"weights[0] = nan"},
               [] { WeightedSampler({.weights = {std::nan("")}}); });
}

std::vector<std::int64_t> some_lengths(std::int64_t size) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < size; ++i) lengths.push_back(i * 7919 % 509);
  return lengths;
}

TEST(LengthSampler, HasEachItemOnceInEachEpoch) {
  for (const std::int64_t size : {1, 7, 1000, 1003}) {
    for (const std::int64_t window : {1, 3, 100}) {
      for (const bool shuffle : {false, true}) {
        const LengthSampler sampler({.lengths = some_lengths(size),
                                     .batch_size = 5,
                                     .shuffle = shuffle,
                                     .drop_last = false,
                                     .window_batches = window});
        EXPECT_EQ(sampler.steps_per_epoch(), static_cast<std::uint64_t>((size + 4) / 5));
        for (const std::uint64_t epoch : {0U, 1U, 9U}) {
          EXPECT_TRUE(is_all_of(epoch_of(sampler, epoch), size)) << size << ", " << window;
        }
      }
    }
  }
}

TEST(LengthSampler, BatchesHaveAboutOneLength) {
  const std::vector<std::int64_t> lengths = some_lengths(20'000);
  const LengthSampler sampler({.lengths = lengths, .batch_size = 16});
  std::int64_t padded = 0;
  std::int64_t needed = 0;
  for (std::uint64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    std::int64_t longest = 0;
    for (const Item& item : sampler.batch(step)) {
      const std::int64_t length = lengths[static_cast<std::size_t>(item.index)];
      longest = std::max(longest, length);
      needed += length;
    }
    padded += 16 * longest;
  }
  EXPECT_LT(static_cast<double>(padded), 1.02 * static_cast<double>(needed));
}

TEST(LengthSampler, BatchesOfAWindowComeInRandomOrder) {
  const LengthSamplerOptions options{.lengths = some_lengths(5000), .batch_size = 10, .seed = 2};
  const LengthSampler sampler(options);
  int rises = 0;
  std::int64_t last = 0;
  for (std::uint64_t step = 0; step < 500; ++step) {
    const std::int64_t length =
        options.lengths[static_cast<std::size_t>(sampler.batch(step)[0].index)];
    rises += length > last;
    last = length;
  }
  EXPECT_GT(rises, 200);
  EXPECT_LT(rises, 300);
  EXPECT_NE(epoch_of(sampler, 0), epoch_of(sampler, 1));
  EXPECT_EQ(sampler.batch(777), LengthSampler(options).batch(777));
}

TEST(LengthSampler, RefusesImpossibleSizes) {
  expect_error(Errc::invalid_argument, {"LengthSampler: size = 0"}, [] { LengthSampler({}); });
  expect_error(Errc::invalid_argument, {"window_batches = 0"},
               [] { LengthSampler({.lengths = {1}, .window_batches = 0}); });
}

}  // namespace
}  // namespace weft::sampler_test
