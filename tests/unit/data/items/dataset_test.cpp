#include <weft/data/dataset.hpp>

#include <array>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::dataset_test {
namespace {

using testing::expect_error;

TEST(Tensors, ReadsItemsStraightToTheirPlace) {
  std::vector<float> x{0, 1, 2, 3, 4, 5};
  const std::vector<std::int32_t> y{7, 8, 9};
  const DatasetPtr dataset = tensors({{"x", x, {2}}, {"y", y}}, "train");
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->name(), "train");
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{{"x", {DType::f32, {2}}}, {"y", {DType::i32, {}}}}));
  std::array<float, 2> pixels{};
  std::array<std::int32_t, 1> label{};
  const std::array<std::span<std::byte>, 2> out{std::as_writable_bytes(std::span(pixels)),
                                                std::as_writable_bytes(std::span(label))};
  for (int i = 0; i < 3; ++i) {
    dataset->read({.index = i}, out);
    EXPECT_EQ(pixels, (std::array<float, 2>{2.0F * static_cast<float>(i),
                                            2.0F * static_cast<float>(i) + 1}));
    EXPECT_EQ(label[0], 7 + i);
  }
  x[2] = 40;  // the dataset borrows x, so its element changes too
  EXPECT_EQ(read_item(*dataset, {.index = 1}).view().get<float>("x")[0], 40);
}

TEST(Tensors, TakesElementsOver) {
  DatasetPtr dataset;
  {
    std::vector<double> x{1, 2};
    const double* const place = x.data();
    Array array("x", std::move(x));
    EXPECT_EQ(reinterpret_cast<const double*>(array.elements.data()), place);
    dataset = tensors({array});
  }
  EXPECT_EQ(read_item(*dataset, {.index = 1}).view().get<double>(0)[0], 2);
}

TEST(Tensors, RefusesArraysThatDontFit) {
  const std::vector<float> x(6);
  const std::vector<float> y(4);
  expect_error(Errc::invalid_argument, {"'x' has 3 items, but 'y' has 4"}, [&] {
    (void)tensors({{"x", x, {2}}, {"y", y}});
  });
  expect_error(Errc::invalid_argument, {"'x' has 6 elements: expected a multiple of 4"}, [&] {
    (void)tensors({{"x", x, {4}}});
  });
  expect_error(Errc::invalid_argument, {"'x' has 6 elements: expected a multiple of 0"}, [&] {
    (void)tensors({{"x", x, {0}}});
  });
  expect_error(Errc::invalid_argument, {"two fields have the name 'x'"}, [&] {
    (void)tensors({{"x", x}, {"x", x}});
  });
  expect_error(Errc::invalid_argument, {"has no name"}, [&] { (void)tensors({{"", x}}); });
  expect_error(Errc::invalid_argument, {"has no fields"}, [&] { (void)tensors({}); });
}

TEST(Dataset, RefusesIndicesAndMemoryThatDontFit) {
  const std::vector<float> x(6);
  const DatasetPtr dataset = tensors({{"x", x, {2}}}, "train");
  alignas(8) std::array<std::byte, 16> memory{};
  const auto read = [&](std::int64_t index, std::span<std::byte> out) {
    dataset->read({.index = index}, {&out, 1});
  };
  const auto whole = std::span(memory).first(8);
  expect_error(Errc::invalid_argument, {"train: item 3 is out of range: there are 3 items"},
               [&] { read(3, whole); });
  expect_error(Errc::invalid_argument, {"train: item -1"}, [&] { read(-1, whole); });
  expect_error(Errc::invalid_argument, {"field 'x'", "memory has 7 bytes", "f32[2] needs 8"},
               [&] { read(0, whole.first(7)); });
  expect_error(Errc::invalid_argument, {"at a multiple of 4"},
               [&] { read(0, std::span(memory).subspan(2, 8)); });
  expect_error(Errc::invalid_argument,
               {"memory is given for 0 fields, but the items have 1: x f32[2]"},
               [&] { dataset->read({}, {}); });
}

TEST(ItemView, RefusesOtherFieldsAndTypes) {
  const std::vector<float> x(6);
  const ItemBuffer item = read_item(*tensors({{"x", x}}), {});
  EXPECT_EQ(item.view().get<float>("x").size(), 1U);
  expect_error(Errc::invalid_argument, {"there is no field 'y'; there are: x f32[]"},
               [&] { (void)item.view().get<float>("y"); });
  expect_error(Errc::invalid_argument, {"there is no field 1"},
               [&] { (void)item.view().get<float>(1); });
  expect_error(Errc::invalid_argument, {"field 'x' is f32[], but was requested as i32"},
               [&] { (void)item.view().get<std::int32_t>(0); });
}

class Broken : public Dataset {
 public:
  std::string name() const override { return "broken"; }
  std::int64_t size() const override { return 10; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory) const override {
    if (item.index == 4) fail(Errc::timeout, "no answer");
    throw std::runtime_error("a mistake");
  }
  std::vector<Field> fields_{{"x", {DType::f32, {}}}};
};

/// A dataset that throws an object without a message.
class Mute : public Dataset {
 public:
  std::string name() const override { return "mute"; }
  std::int64_t size() const override { return 9; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory) const override {
    if (item.index == 0) throw 7;
    throw "a text";
  }
  std::vector<Field> fields_{{"x", {DType::f32, {}}}};
};

TEST(Dataset, SaysWhichItemOfWhichDatasetThrewWhatIsNoException) {
  for (const std::int64_t index : {0, 5}) {
    expect_error(
        Errc::loop_failed,
        {fmt::format("mute: item {} of epoch 2: ", index), "isn't derived from std::exception"},
        [&] { (void)read_item(Mute(), {.index = index, .epoch = 2}); });
  }
}

TEST(Dataset, SaysWhichItemOfWhichDatasetFailed) {
  expect_error(Errc::timeout, {"broken: item 4 of epoch 2: no answer"},
               [] { (void)read_item(Broken(), {.index = 4, .epoch = 2}); });
  expect_error(Errc::loop_failed, {"broken: item 5 of epoch 0: a mistake"},
               [] { (void)read_item(Broken(), {.index = 5}); });
}

TEST(ItemRandom, IsAFunctionOfTheItem) {
  std::set<std::vector<std::uint32_t>> seen;
  for (std::int64_t index = 0; index < 4; ++index) {
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        ItemRandom random({index, epoch, seed});
        ItemRandom again({index, epoch, seed});
        std::vector<std::uint32_t> words;
        for (int i = 0; i < 9; ++i) {
          words.push_back(random());
          EXPECT_EQ(again(), words.back());
        }
        EXPECT_EQ(std::set(words.begin(), words.end()).size(), 9U);
        seen.insert(words);
      }
    }
  }
  EXPECT_EQ(seen.size(), 64U);
}

TEST(ItemRandom, DrawsUniformNumbers) {
  ItemRandom random({.index = 3});
  double sum = 0;
  double squares = 0;
  const int count = 100'000;
  for (int i = 0; i < count; ++i) {
    const float number = random.uniform(-1, 3);
    ASSERT_TRUE(number >= -1 && number < 3);
    sum += number;
    squares += (number - 1) * (number - 1);
  }
  EXPECT_NEAR(sum / count, 1, 4 * std::sqrt(16.0 / 12 / count));
  EXPECT_NEAR(squares / count, 16.0 / 12, 0.02);
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) ++counts[static_cast<std::size_t>(random.below(3))];
  for (const int times : counts) EXPECT_NEAR(times, 1000, 4 * std::sqrt(3000 * 2.0 / 9));
  expect_error(Errc::invalid_argument, {"count = 0"}, [&] { (void)random.below(0); });
  std::vector<int> order{1, 2, 3};
  // ItemRandom is a random generator as <random> defines it.
  std::shuffle(order.begin(), order.end(), random);
}

}  // namespace
}  // namespace weft::dataset_test
