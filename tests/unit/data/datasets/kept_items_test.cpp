/// Tests cached() and skip_errors(), and how they and other datasets use a dataset whose items can
/// be read in one order only.

#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <weft/data/image_transforms.hpp>
#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::kept_items_test {
namespace {

using testing::expect_error;

/// A dataset of items with two fields that counts reads. The items in `bad` can't be read.
class Counted : public Dataset {
 public:
  explicit Counted(std::int64_t size, std::set<std::int64_t> bad = {}, Errc code = Errc::corrupt)
      : size_(size), bad_(std::move(bad)), code_(code) {}

  std::string name() const override { return "counted"; }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  int reads() const { return reads_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    ++reads_;
    if (bad_.contains(item.index)) fail(code_, "item {} is bad", item.index);
    const ItemWriter writer(fields_, out);
    writer.get<std::int32_t>("a")[0] = static_cast<std::int32_t>(item.index);
    for (double& element : writer.get<double>("b")) element = static_cast<double>(item.index) / 2;
  }

  const std::int64_t size_;
  const std::set<std::int64_t> bad_;
  const Errc code_;
  const std::vector<Field> fields_{{"a", {DType::i32, {}}}, {"b", {DType::f64, {2}}}};
  mutable std::atomic<int> reads_{0};
};

std::int32_t read(const Dataset& dataset, const Item& item) {
  const ItemBuffer buffer = read_item(dataset, item);
  const std::int32_t a = buffer.view().get<std::int32_t>("a")[0];
  EXPECT_EQ(buffer.view().get<double>("b")[1], a / 2.0);
  return a;
}

TEST(Cached, ReadsEachItemOnceWhileThereIsRoom) {
  const auto source = std::make_shared<const Counted>(8);
  const DatasetPtr all = cached(source);
  const DatasetPtr some = cached(source, 3 * 20 + 19);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(read(*all, {.index = i, .epoch = epoch}), i);
  }
  EXPECT_EQ(source->reads(), 8);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(read(*some, {.index = i, .epoch = epoch}), i);
  }
  EXPECT_EQ(source->reads(), 8 + 8 + 2 * 5);
  expect_error(Errc::invalid_argument, {"bytes_max = 19: expected at least 20"},
               [&] { (void)cached(source, 19); });
}

TEST(Cached, IsSharedByThreads) {
  const auto source = std::make_shared<const Counted>(64);
  const DatasetPtr dataset = cached(source, 40 * 20);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::int64_t i = 0; i < 640; ++i) {
        const std::int64_t index = (i * 7 + thread * 13) % 64;
        EXPECT_EQ(read(*dataset, {.index = index}), index);
      }
    });
  }
  threads.clear();
  const int before = source->reads();
  for (std::int64_t i = 0; i < 64; ++i) (void)read(*dataset, {.index = i});
  EXPECT_EQ(source->reads() - before, 64 - 40);
}

TEST(SkipErrors, TakesAnotherItemThatIsAFunctionOfTheItem) {
  const auto source = std::make_shared<const Counted>(10, std::set<std::int64_t>{2, 5});
  std::vector<std::string> said;
  std::int64_t last = 0;
  const DatasetPtr dataset =
      skip_errors(source, {.on_skip = [&](const std::string& error, std::int64_t count) {
                    said.push_back(error);
                    last = count;
                  }});
  EXPECT_EQ(dataset->size(), 10);
  for (const std::int64_t i : {0, 1, 3, 4, 6, 7, 8, 9}) EXPECT_EQ(read(*dataset, {.index = i}), i);
  EXPECT_TRUE(said.empty());
  std::set<std::int32_t> seen;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const std::int32_t first = read(*dataset, {.index = 5, .epoch = epoch});
    EXPECT_EQ(read(*dataset, {.index = 5, .epoch = epoch}), first);
    EXPECT_FALSE(first == 2 || first == 5);
    seen.insert(first);
  }
  EXPECT_GT(seen.size(), 4U);
  ASSERT_GE(said.size(), 80U);
  EXPECT_EQ(said[0], "counted: item 5 of epoch 0: item 5 is bad");
  EXPECT_EQ(last, static_cast<std::int64_t>(said.size()));
}

TEST(SkipErrors, LeavesErrorsOfTheMachineAndAllBadItems) {
  const auto quiet = [](const std::string&, std::int64_t) {};
  const auto absent = std::make_shared<const Counted>(2, std::set<std::int64_t>{1}, Errc::io);
  expect_error(Errc::io, {"item 1 is bad"},
               [&] { (void)read(*skip_errors(absent, {.on_skip = quiet}), {.index = 1}); });
  const auto bad = std::make_shared<const Counted>(2, std::set<std::int64_t>{0, 1});
  expect_error(Errc::corrupt, {"3 items in a row can't be read; the last error: counted"}, [&] {
    (void)read(*skip_errors(bad, {.tries_max = 3, .on_skip = quiet}), {.index = 1});
  });
  EXPECT_EQ(bad->reads(), 3);
  expect_error(Errc::invalid_argument, {"tries_max = 0"},
               [&] { (void)skip_errors(bad, {.tries_max = 0}); });
}

/// A dataset of images that can be read in one order only.
class InOrder : public Dataset {
 public:
  std::string name() const override { return "in_order"; }
  std::int64_t size() const override { return 4; }
  const std::vector<Field>& fields() const override { return fields_; }
  bool is_sequential() const override { return true; }

 private:
  void read_item(const Item&, ItemMemory) const override {}

  const std::vector<Field> fields_{{"x", {DType::f32, {1, 2, 2}}}, {"label", {DType::i32, {}}}};
};

TEST(OneOrder, IsRefusedWhereItemsAreReadInAnother) {
  const auto source = std::make_shared<const InOrder>();
  const auto refused = [&](std::string_view kind, const std::function<void()>& make) {
    expect_error(Errc::invalid_argument,
                 {kind, "the items of 'in_order' can be read only in one order"}, make);
  };
  refused("skip_errors: ", [&] { (void)skip_errors(source); });
  refused("mix_up: ", [&] { (void)mix_up(source, {.num_classes = 2}); });
  refused("cut_mix: ", [&] { (void)cut_mix(source, {.num_classes = 2}); });
  refused("mix: ", [&] { (void)mix({source, source}, {1, 1}); });
  refused("subset: ", [&] { (void)subset(source, {1, 0}); });
  refused("split: ", [&] { (void)split(source, {1, 1}, {.shuffle_seed = 3}); });
  EXPECT_TRUE(mix({source, source}, {1, 1}, {.shuffle = false})->is_sequential());
  EXPECT_TRUE(subset(source, {0, 2})->is_sequential());
  EXPECT_TRUE(split(source, {1, 1})[1]->is_sequential());
  EXPECT_TRUE(cached(source)->is_sequential());
}

}  // namespace
}  // namespace weft::kept_items_test
