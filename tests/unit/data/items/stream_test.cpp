#include <weft/data/stream.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include <weft/data/transforms.hpp>

#include "data/items/stream_rows.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::stream_test {
namespace {

using testing::expect_error;
using Numbers = std::vector<std::int64_t>;

/// A stream of the numbers 0, 1, and so on, plus 1000 for each epoch.
class Counting : public Stream {
 public:
  explicit Counting(std::int64_t size, std::int64_t failing = -1)
      : size_(size), failing_(failing) {}

  std::string name() const override { return "counting"; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  bool next_item(ItemMemory out) override {
    if (index() == size_) return false;
    if (index() == failing_) throw std::runtime_error("torn");
    *reinterpret_cast<std::int64_t*>(out[0].data()) =
        index() + 1000 * static_cast<std::int64_t>(epoch());
    return true;
  }
  bool skip_item() override { return index() < size_; }
  void rewind_items() override {}

  const std::int64_t size_;
  const std::int64_t failing_;
  const std::vector<Field> fields_{{"x", {DType::i64, {}}}};
};

Numbers rest_of(Stream& stream) {
  Numbers numbers;
  const ItemBuffer item(stream.fields());
  while (stream.next(item.memory())) numbers.push_back(item.view().get<std::int64_t>("x")[0]);
  return numbers;
}

StreamPtr shuffled(std::int64_t items, std::int64_t size, std::uint64_t seed = 0) {
  return shuffle_buffer(std::make_unique<Counting>(items), size, seed);
}

TEST(Stream, ErrorsHaveNameAndIndex) {
  Counting stream(5, 3);
  expect_error(Errc::loop_failed, {"counting: item 3 of epoch 0: torn"},
               [&] { (void)rest_of(stream); });
  std::int32_t small = 0;
  const std::span<std::byte> memory = std::as_writable_bytes(std::span(&small, 1));
  expect_error(Errc::invalid_argument, {"counting: field 'x': memory has 4 bytes"}, [&] {
    (void)stream.next({&memory, 1});
  });
}

TEST(ShuffleBuffer, HasEachItemOnce) {
  for (const std::int64_t size : {1, 2, 7, 50, 1000}) {
    const StreamPtr stream = shuffled(50, size);
    Numbers numbers = rest_of(*stream);
    EXPECT_EQ(std::ranges::is_sorted(numbers), size == 1) << size;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      // An item can't leave the buffer before it has been read into the buffer.
      EXPECT_LT(numbers[i], static_cast<std::int64_t>(i) + size) << size;
    }
    std::ranges::sort(numbers);
    Numbers expected(50);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers, expected) << size;
  }
  EXPECT_TRUE(rest_of(*shuffled(0, 3)).empty());
}

TEST(ShuffleBuffer, IsAFunctionOfSeedAndEpoch) {
  const StreamPtr stream = shuffled(100, 20, 1);
  EXPECT_EQ(stream->name(), "shuffle_buffer(counting, 20, seed 1)");
  const Numbers first = rest_of(*stream);
  stream->rewind(1);
  Numbers second = rest_of(*stream);
  for (std::int64_t& number : second) number -= 1000;
  EXPECT_NE(second, first);
  stream->rewind(0);
  EXPECT_EQ(rest_of(*stream), first);
  EXPECT_NE(rest_of(*shuffled(100, 20, 2)), first);
  for (std::size_t skipped = 0; skipped <= 100; skipped += 9) {
    stream->rewind(0);
    for (std::size_t i = 0; i < skipped; ++i) ASSERT_TRUE(stream->skip());
    EXPECT_EQ(rest_of(*stream),
              Numbers(first.begin() + static_cast<std::ptrdiff_t>(skipped), first.end()));
  }
}

TEST(ShuffleBuffer, EveryOrderIsAsLikelyAsOthersWhenItHoldsAll) {
  std::map<Numbers, int> seen;
  constexpr int kDraws = 6000;
  const StreamPtr stream = shuffled(3, 3);
  for (std::uint64_t epoch = 0; epoch < kDraws; ++epoch) {
    stream->rewind(epoch);
    Numbers numbers = rest_of(*stream);
    for (std::int64_t& number : numbers) number %= 1000;
    ++seen[numbers];
  }
  ASSERT_EQ(seen.size(), 6U);
  for (const auto& [numbers, count] : seen) EXPECT_NEAR(count, kDraws / 6, 150);
}

TEST(ShuffleBuffer, SizesThatAreNoneAreRefused) {
  expect_error(Errc::invalid_argument, {"size = 0"}, [] { (void)shuffled(3, 0); });
  expect_error(Errc::invalid_argument, {"the source is null"},
               [] { (void)shuffle_buffer(nullptr, 1); });
}

std::int64_t read(StreamRows& rows) {
  const ItemBuffer item(rows.stream().fields());
  rows.read(item.memory());
  return item.view().get<std::int64_t>("x")[0];
}

TEST(StreamRows, GoThroughEpochs) {
  StreamRows rows(std::make_unique<Counting>(3));
  Numbers numbers;
  for (int i = 0; i < 8; ++i) numbers.push_back(read(rows));
  EXPECT_EQ(numbers, (Numbers{0, 1, 2, 1000, 1001, 1002, 2000, 2001}));
  EXPECT_EQ(rows.row(), 8U);
  for (const std::uint64_t row : {7U, 0U, 3U, 5U, 20U, 2U}) {
    rows.seek(row);
    EXPECT_EQ(rows.row(), row);
    EXPECT_EQ(read(rows), static_cast<std::int64_t>(row / 3 * 1000 + row % 3)) << row;
  }
}

TEST(StreamRows, BeginAtTheFirstItem) {
  auto stream = std::make_unique<Counting>(3);
  stream->rewind(4);
  StreamRows rows(std::move(stream));
  EXPECT_EQ(read(rows), 0);
}

TEST(StreamRows, AnErrorStaysWhereItIs) {
  StreamRows rows(std::make_unique<Counting>(5, 2));
  EXPECT_EQ(read(rows), 0);
  EXPECT_EQ(read(rows), 1);
  for (int i = 0; i < 2; ++i) {
    expect_error(Errc::loop_failed, {"counting: item 2"}, [&] { (void)read(rows); });
    EXPECT_EQ(rows.row(), 2U);
  }
  rows.seek(3);
  EXPECT_EQ(read(rows), 3);
}

TEST(StreamRows, AnEmptyEpochIsAnError) {
  StreamRows rows(std::make_unique<Counting>(0));
  expect_error(Errc::invalid_argument, {"counting: epoch 0 has no items"},
               [&] { (void)read(rows); });
  expect_error(Errc::invalid_argument, {"has no items"}, [&] { rows.seek(1); });
}

TEST(StreamItems, AreTheRowsOfAllEpochsInAnyOrder) {
  const DatasetPtr items = stream_items(std::make_unique<Counting>(5), 4);
  EXPECT_EQ(items->size(), 4);
  const auto at = [&](std::int64_t index, std::uint64_t epoch) {
    return read_item(*items, {.index = index, .epoch = epoch}).view().get<std::int64_t>("x")[0];
  };
  const Numbers rows{0, 1, 2, 3, 4, 1000, 1001, 1002, 1003, 1004, 2000, 2001};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    EXPECT_EQ(at(static_cast<std::int64_t>(row % 4), row / 4), rows[row]) << row;
  }
  EXPECT_EQ(at(2, 0), 2);
  EXPECT_EQ(at(1, 2), 1004);
  expect_error(Errc::invalid_argument, {"counting", "items_per_epoch = 0"},
               [] { stream_items(std::make_unique<Counting>(5), 0); });
}

TEST(StreamItems, WhatIsMadeOfThemIsSequentialToo) {
  const DatasetPtr items = stream_items(std::make_unique<Counting>(5), 4);
  EXPECT_TRUE(items->is_sequential());
  EXPECT_TRUE(subset(items, 1, 3)->is_sequential());
  EXPECT_TRUE(subset(items, std::vector<std::int64_t>{0, 2})->is_sequential());
  EXPECT_TRUE(concat({items, items})->is_sequential());
  const DatasetPtr array = tensors({{"y", std::vector<float>(4)}});
  EXPECT_FALSE(array->is_sequential());
  EXPECT_FALSE(subset(array, 1, 3)->is_sequential());
  EXPECT_TRUE(zip({array, items})->is_sequential());
  EXPECT_TRUE(mix({items, items}, {1, 1}, {.shuffle = false})->is_sequential());
  const auto copy = [](const ItemView&, const ItemWriter&, ItemRandom&) {};
  EXPECT_TRUE(map(items, {{"z", {DType::f32, {}}}}, copy)->is_sequential());
  EXPECT_FALSE(map(array, {{"z", {DType::f32, {}}}}, copy)->is_sequential());
}

}  // namespace
}  // namespace weft::stream_test
