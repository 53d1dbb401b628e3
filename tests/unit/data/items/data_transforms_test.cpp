#include <weft/data/transforms.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::data_transforms_test {
namespace {

using testing::expect_error;

/// Returns a dataset whose field has the numbers begin, begin + 1, and so on.
DatasetPtr numbers(std::int64_t count, std::int64_t begin = 0, const std::string& name = "numbers",
                   const std::string& field = "x") {
  std::vector<std::int64_t> x(static_cast<std::size_t>(count));
  std::iota(x.begin(), x.end(), begin);
  return tensors({{field, std::move(x)}}, name);
}

std::int64_t number(const Dataset& dataset, const Item& item, std::size_t field = 0) {
  return read_item(dataset, item).view().get<std::int64_t>(field)[0];
}

std::vector<std::int64_t> all_of(const Dataset& dataset, std::size_t field = 0) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    all.push_back(number(dataset, {.index = i}, field));
  }
  return all;
}

using Numbers = std::vector<std::int64_t>;

const std::vector<Field> kDrawn{{"drawn", {DType::u32, {}}}};

void draw(const ItemView&, const ItemWriter& out, ItemRandom& random) {
  out.get<std::uint32_t>("drawn")[0] = random();
}

TEST(Map, MakesFieldsAndKeepsOthers) {
  const DatasetPtr source = zip({numbers(5), numbers(5, 100, "b", "y")});
  const DatasetPtr mapped = map(source, {{"twice", {DType::i64, {2}}}},
                                [](const ItemView& in, const ItemWriter& out, ItemRandom&) {
                                  const std::int64_t x = in.get<std::int64_t>("x")[0];
                                  const auto twice = out.get<std::int64_t>("twice");
                                  twice[0] = 2 * x;
                                  twice[1] = in.get<std::int64_t>("y")[0];
                                },
                                {.keep = {"y"}});
  EXPECT_EQ(mapped->size(), 5);
  EXPECT_EQ(mapped->name(), "map(zip(numbers, b))");
  EXPECT_EQ(mapped->fields(),
            (std::vector<Field>{{"twice", {DType::i64, {2}}}, {"y", {DType::i64, {}}}}));
  const ItemBuffer item = read_item(*mapped, {.index = 3});
  EXPECT_EQ(item.view().get<std::int64_t>(0)[0], 6);
  EXPECT_EQ(item.view().get<std::int64_t>(0)[1], 103);
  EXPECT_EQ(item.view().get<std::int64_t>("y")[0], 103);
}

TEST(Map, DrawsByTheItemAlone) {
  const DatasetPtr drawn = map(numbers(10), kDrawn, draw);
  const auto word = [&](const Dataset& dataset, const Item& item) {
    return read_item(dataset, item).view().get<std::uint32_t>("drawn")[0];
  };
  std::set<std::uint32_t> words;
  for (std::int64_t index = 0; index < 10; ++index) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      const Item item{index, epoch, 5};
      EXPECT_EQ(word(*drawn, item), ItemRandom(item)());
      words.insert(word(*drawn, item));
    }
  }
  EXPECT_EQ(words.size(), 30U);

  // A map() of a map(), and the parts of a concat(), draw different random numbers. The parts of a
  // zip() draw the same ones.
  const DatasetPtr outer = map(drawn, {{"outer", {DType::u32, {}}}},
                               [](const ItemView&, const ItemWriter& out, ItemRandom& random) {
                                 out.get<std::uint32_t>(0)[0] = random();
                               },
                               {.keep = {"drawn"}});
  const ItemBuffer both = read_item(*outer, {.index = 2});
  EXPECT_NE(both.view().get<std::uint32_t>(0)[0], both.view().get<std::uint32_t>(1)[0]);
  const DatasetPtr joined = concat({drawn, drawn});
  EXPECT_NE(word(*joined, {.index = 2}), word(*joined, {.index = 12}));
  const DatasetPtr mask = map(numbers(10), {{"mask", {DType::u32, {}}}},
                              [](const ItemView&, const ItemWriter& out, ItemRandom& random) {
                                out.get<std::uint32_t>(0)[0] = random();
                              });
  const DatasetPtr pair = zip({drawn, mask});
  const ItemBuffer paired = read_item(*pair, {.index = 2});
  EXPECT_EQ(paired.view().get<std::uint32_t>(0)[0], paired.view().get<std::uint32_t>(1)[0]);
}

TEST(Map, NamesItselfAndTheItemOfAnException) {
  const DatasetPtr broken = map(
      numbers(5), kDrawn,
      [](const ItemView&, const ItemWriter&, ItemRandom&) { throw std::out_of_range("too far"); },
      {.name = "augment"});
  const DatasetPtr around = subset(zip({broken, numbers(5)}), 2, 5);
  expect_error(Errc::loop_failed, {"augment(numbers): item 3 of epoch 4: too far"},
               [&] { (void)read_item(*around, {.index = 1, .epoch = 4}); });
  const DatasetPtr mistaken =
      map(numbers(5), kDrawn,
          [](const ItemView& in, const ItemWriter&, ItemRandom&) { (void)in.get<float>("x"); });
  expect_error(Errc::invalid_argument,
               {"map(numbers): item 0", "field 'x' is i64[], but was requested as f32"},
               [&] { (void)read_item(*mistaken, {}); });
}

TEST(Map, RefusesFieldsThatDontFit) {
  expect_error(Errc::invalid_argument, {"no field 'z' to keep; there are: x i64[]"},
               [] { (void)map(numbers(3), kDrawn, draw, {.keep = {"z"}}); });
  expect_error(Errc::invalid_argument, {"two fields have the name 'x'"}, [] {
    (void)map(numbers(3), {{"x", {DType::f32, {}}}}, draw, {.keep = {"x"}});
  });
  expect_error(Errc::invalid_argument, {"map(numbers): there is no function"},
               [] { (void)map(numbers(3), kDrawn, nullptr); });
  expect_error(Errc::invalid_argument, {"map: part 0 is null"},
               [] { (void)map(nullptr, kDrawn, draw); });
}

TEST(Filter, CallsOnceForEachItemInOrder) {
  Numbers asked;
  const DatasetPtr even = filter(numbers(10), [&](const ItemView& item) {
    asked.push_back(item.get<std::int64_t>("x")[0]);
    return asked.back() % 2 == 0;
  });
  EXPECT_EQ(asked, (Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(all_of(*even), (Numbers{0, 2, 4, 6, 8}));
  EXPECT_EQ(asked.size(), 10U);
  expect_error(Errc::loop_failed, {"odd(numbers): item 0 of epoch 0: an exception that isn't"}, [] {
    (void)filter(
        numbers(3), [](const ItemView&) -> bool { throw 7; }, "odd");
  });
  expect_error(Errc::loop_failed, {"odd(numbers): item 0 of epoch 0: no"}, [] {
    (void)filter(
        numbers(3), [](const ItemView&) -> bool { throw std::runtime_error("no"); }, "odd");
  });
}

TEST(Zip, RefusesOtherSizesAndEqualNames) {
  expect_error(Errc::invalid_argument, {"'a' has 3 items, but 'b' has 4"}, [] {
    (void)zip({numbers(3, 0, "a"), numbers(4, 0, "b", "y")});
  });
  expect_error(Errc::invalid_argument, {"two fields have the name 'x'"}, [] {
    (void)zip({numbers(3), numbers(3)});
  });
  expect_error(Errc::invalid_argument, {"zip: there are no parts"}, [] { (void)zip({}); });
}

TEST(Concat, HasThePartsInOrder) {
  const DatasetPtr parts = concat({numbers(2), numbers(0), numbers(3, 10), numbers(1, 20)});
  EXPECT_EQ(all_of(*parts), (Numbers{0, 1, 10, 11, 12, 20}));
  expect_error(Errc::invalid_argument, {"'a' has x i64[], but 'b' has y i64[]"}, [] {
    (void)concat({numbers(3, 0, "a"), numbers(4, 0, "b", "y")});
  });
}

TEST(Subset, IsARangeOrAList) {
  EXPECT_EQ(all_of(*subset(numbers(10), 3, 6)), (Numbers{3, 4, 5}));
  EXPECT_EQ(all_of(*subset(numbers(10), {9, 0, 9})), (Numbers{9, 0, 9}));
  for (const auto& [begin, end] : {std::pair(-1, 2), std::pair(3, 2), std::pair(0, 11)}) {
    expect_error(Errc::invalid_argument, {"of 'numbers' are out of range: it has 10"},
                 [&] { (void)subset(numbers(10), begin, end); });
  }
  expect_error(Errc::invalid_argument, {"item 10 is out of range: there are 10"},
               [] { (void)subset(numbers(10), {10}); });
}

TEST(Split, HasEachItemOnce) {
  const std::vector<DatasetPtr> plain = split(numbers(10), {0.75, 0.25});
  EXPECT_EQ(all_of(*plain[0]), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(all_of(*plain[1]), (Numbers{8, 9}));
  std::set<Numbers> firsts;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Numbers together;
    for (const DatasetPtr& part : split(numbers(1000), {3, 1, 0, 2}, {.shuffle_seed = seed})) {
      const Numbers numbers_of_part = all_of(*part);
      if (together.empty()) firsts.insert(numbers_of_part);
      together.insert(together.end(), numbers_of_part.begin(), numbers_of_part.end());
    }
    std::ranges::sort(together);
    EXPECT_EQ(together, all_of(*numbers(1000)));
  }
  EXPECT_EQ(firsts.size(), 10U);
  expect_error(Errc::invalid_argument, {"share -1"}, [] { (void)split(numbers(3), {2, -1}); });
  expect_error(Errc::invalid_argument, {"shares of 'numbers' are 0"},
               [] { (void)split(numbers(3), {0}); });
}

/// Returns the first `count` items of a mix, which may go over several epochs.
Numbers mixed(const Dataset& dataset, std::int64_t count) {
  Numbers items;
  for (std::int64_t at = 0; at < count; ++at) {
    items.push_back(
        number(dataset, {at % dataset.size(), static_cast<std::uint64_t>(at / dataset.size()), 3}));
  }
  return items;
}

TEST(Mix, HoldsTheWeightsExactlyInEachBlock) {
  // The parts have 1000 items from 0 on, 50 items from 10,000 on, and 7 items from 20,000 on.
  const DatasetPtr dataset =
      mix({numbers(1000), numbers(50, 10'000), numbers(7, 20'000)}, {0.5, 0.3, 0.2}, {.size = 999});
  const Numbers items = mixed(*dataset, 2 * kMixBlock);
  for (int block = 0; block < 2; ++block) {
    std::map<std::int64_t, std::int64_t> counts;
    for (std::int64_t i = 0; i < kMixBlock; ++i) {
      ++counts[items[static_cast<std::size_t>(block * kMixBlock + i)] / 10'000];
    }
    EXPECT_EQ(counts,
              (std::map<std::int64_t, std::int64_t>{{0, 32'768}, {1, 19'661}, {2, 13'107}}));
  }
  // All items of a part are drawn equally often, up to a difference of one.
  std::map<std::int64_t, std::int64_t> times;
  for (const std::int64_t item : items) ++times[item];
  ASSERT_EQ(times.size(), 1057U);
  for (const auto& [item, count] : times) {
    const std::int64_t part = item / 10'000;
    const std::int64_t draws = part == 0 ? 65'536 : part == 1 ? 39'322 : 26'214;
    const std::int64_t size = part == 0 ? 1000 : part == 1 ? 50 : 7;
    EXPECT_TRUE(count == draws / size || count == draws / size + 1) << item << ": " << count;
  }
  // The part changes from item to item as often as in a random sequence.
  std::int64_t changes = 0;
  for (std::size_t i = 1; i < items.size(); ++i)
    changes += items[i] / 10'000 != items[i - 1] / 10'000;
  EXPECT_NEAR(static_cast<double>(changes), 0.62 * 2 * 65'536, 1000);
}

TEST(Mix, CountsPassesAsEpochs) {
  const DatasetPtr dataset =
      mix({map(numbers(3), kDrawn, draw), map(numbers(5), kDrawn, draw)}, {1, 1});
  EXPECT_EQ(dataset->size(), 8);
  std::set<std::uint32_t> words;
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::int64_t i = 0; i < 8; ++i) {
      words.insert(read_item(*dataset, {i, epoch, 0}).view().get<std::uint32_t>(0)[0]);
    }
  }
  EXPECT_EQ(words.size(), 80U);
}

TEST(Mix, KeepsThePartsOrderIfAsked) {
  const DatasetPtr dataset = mix({numbers(70'000)}, {1}, {.shuffle = false});
  Numbers items = mixed(*dataset, kMixBlock);
  std::ranges::sort(items);
  EXPECT_EQ(items, all_of(*numbers(kMixBlock)));
}

TEST(Mix, RefusesWeightsAndParts) {
  const auto refused = [](const std::vector<double>& weights, std::string_view words) {
    expect_error(Errc::invalid_argument, {words}, [&] {
      (void)mix({numbers(3), numbers(4)}, weights);
    });
  };
  refused({1}, "1 weights are given for 2 parts");
  refused({1, 0}, "weight 0");
  refused({1, -2}, "weight -2");
  refused({1, 1e-9}, "weight 1e-09 of 'numbers' gives less than one item in 65536");
  expect_error(Errc::invalid_argument, {"'numbers' has no items"},
               [] { (void)mix({numbers(0)}, {1}); });
}

}  // namespace
}  // namespace weft::data_transforms_test
