#include "actors/data/batch_reader.hpp"

#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/numbered_dataset.hpp"

namespace weft::batch_reader_test {
namespace {

using testing::Numbered;

/// A worker's chips, and the shards of a batch of `rows` items on each. `shardings` has one entry
/// for each field.
struct Chips {
  Mesh mesh;
  std::vector<TensorType> types{};
  std::vector<Sharding> shardings{};
  std::vector<int> positions{};
  std::vector<std::vector<std::vector<float>>> shards{};  // by field and chip

  Chips(const Mesh& on, std::vector<int> chips, std::int64_t rows, const std::vector<Shape>& items,
        const std::vector<PartitionSpec>& specs)
      : mesh(on), positions(std::move(chips)) {
    for (std::size_t f = 0; f < items.size(); ++f) {
      std::vector<std::int64_t> dims{rows};
      dims.insert(dims.end(), items[f].begin(), items[f].end());
      const TensorType type{DType::f32, Shape(std::span<const std::int64_t>(dims))};
      types.push_back(type);
      shardings.push_back(Sharding::from_spec(mesh, specs[f], type.shape, "batch"));
      shards.emplace_back();
      for (const int position : positions) {
        const PlacedBox box = shard_box(types[f].shape, shardings[f], mesh, position);
        shards[f].emplace_back(static_cast<std::size_t>(box.room.num_elements()), -1.0F);
      }
    }
  }
  RowLayout layout() const {
    std::vector<FieldLayout> fields;
    for (std::size_t f = 0; f < types.size(); ++f) {
      const std::span dims(types[f].shape.begin(), types[f].shape.end());
      FieldLayout field{.item = {DType::f32, Shape(dims.subspan(1))}};
      for (const int position : positions) {
        field.shards.push_back(shard_box(types[f].shape, shardings[f], mesh, position));
      }
      fields.push_back(field);
    }
    return RowLayout(fields);
  }
  std::vector<BatchRows> shapes() const { return {{layout(), types.front().shape[0]}}; }
  BatchMemory memory() {
    BatchMemory memory;
    for (auto& field : shards) {
      memory.emplace_back();
      for (auto& shard : field) {
        memory.back().push_back(reinterpret_cast<std::byte*>(shard.data()));
      }
    }
    return memory;
  }
  /// Returns the element at these indices of the global tensor from a chip's shard; std::nullopt if
  /// another chip has it.
  std::optional<float> at(std::size_t field, std::size_t chip,
                          const std::vector<std::int64_t>& index) const {
    const PlacedBox placed = shard_box(types[field].shape, shardings[field], mesh, positions[chip]);
    std::int64_t element = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const int dim = static_cast<int>(d);
      const std::int64_t in_box = index[d] - placed.box.offsets[dim];
      if (in_box < 0 || in_box >= placed.box.dims[dim]) return {};
      element = element * placed.room[dim] + in_box;
    }
    return shards[field][chip][static_cast<std::size_t>(element)];
  }
};

SamplerPtr in_order(std::int64_t size, std::int64_t batch, bool drop_last = true) {
  return std::make_shared<const DistributedSampler>(DistributedSamplerOptions{
      .size = size, .batch_size = batch, .shuffle = false, .drop_last = drop_last});
}

TEST(BatchReader, WritesEachChipsPartOfEachItem) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const std::vector<std::vector<PartitionSpec>> specs{{{{"data"}, {}}, {{"data"}, {}}},
                                                      {{{"data"}, {"model"}}, {{}, {}}},
                                                      {{{}, {"data"}}, {{"data", "model"}, {}}},
                                                      {{{"model"}, {"data"}}, {{}, {"model"}}}};
  for (const auto& spec : specs) {
    for (const std::vector<int>& positions : {std::vector{0, 1, 2, 3}, std::vector{3}}) {
      Chips chips(mesh, positions, 8, {Shape{4}, Shape{6}}, spec);
      const auto dataset = std::make_shared<const Numbered>(100, std::vector<Shape>{{4}, {6}});
      BatchReader reader(dataset, in_order(100, 8), chips.shapes(), {.num_threads = 3});
      reader.begin(2, 0, chips.memory());
      EXPECT_EQ(reader.finish().num_items, 8);
      for (std::size_t f = 0; f < 2; ++f) {
        for (std::int64_t row = 0; row < 8; ++row) {
          for (std::int64_t i = 0; i < chips.types[f].shape[1]; ++i) {
            for (std::size_t chip = 0; chip < positions.size(); ++chip) {
              const auto seen = chips.at(f, chip, {row, i});
              if (!seen) continue;
              EXPECT_EQ(*seen, Numbered::element(16 + row, f, i)) << f << row << i;
            }
          }
        }
      }
    }
  }
}

TEST(BatchReader, ReadsNoRowsOfOtherWorkers) {
  const Mesh mesh({4}, {"data"});
  Chips chips(mesh, {1, 2}, 16, {Shape{1}}, {{{"data"}, {}}});
  const auto dataset = std::make_shared<const Numbered>(64, std::vector<Shape>{{1}});
  BatchReader reader(dataset, in_order(64, 16), chips.shapes(), {});
  reader.begin(1, 0, chips.memory());
  reader.finish();
  EXPECT_EQ(dataset->reads(), (std::multiset<std::int64_t>{20, 21, 22, 23, 24, 25, 26, 27}));
}

TEST(BatchReader, ReadsAnItemOfSeveralChipsOnce) {
  const Mesh mesh({4}, {"data"});
  Chips chips(mesh, {0, 1, 2, 3}, 4, {Shape{3}}, {{{}, {}}});
  const auto dataset = std::make_shared<const Numbered>(8, std::vector<Shape>{{3}});
  BatchReader reader(dataset, in_order(8, 4), chips.shapes(), {.num_threads = 2});
  reader.begin(0, 0, chips.memory());
  reader.finish();
  EXPECT_EQ(dataset->reads(), (std::multiset<std::int64_t>{0, 1, 2, 3}));
  for (std::size_t chip = 1; chip < 4; ++chip) EXPECT_EQ(chips.shards[0][chip], chips.shards[0][0]);
}

TEST(BatchReader, FillsUpTheLastBatchWithZerosAndAWeight) {
  const Mesh mesh({2}, {"data"});
  Chips chips(mesh, {0, 1}, 4, {Shape{2}, Shape{}}, {{{"data"}, {}}, {{"data"}}});
  const auto dataset = std::make_shared<const Numbered>(7, std::vector<Shape>{{2}});
  BatchReader reader(dataset, in_order(7, 4, false), chips.shapes(), {.has_weight = true});
  reader.begin(1, 0, chips.memory());
  EXPECT_EQ(reader.finish().num_items, 3);
  EXPECT_EQ(chips.shards[1][0], (std::vector<float>{1, 1}));
  EXPECT_EQ(chips.shards[1][1], (std::vector<float>{1, 0}));
  EXPECT_EQ(chips.shards[0][1][2], 0);
  EXPECT_EQ(chips.shards[0][1][0], Numbered::element(6, 0, 0));
}

TEST(BatchReader, RefusesARowWithoutItemWhereNobodyKnowsItsWeight) {
  const Mesh mesh({1}, {"data"});
  Chips chips(mesh, {0}, 4, {Shape{2}}, {{{}, {}}});
  const auto dataset = std::make_shared<const Numbered>(7, std::vector<Shape>{{2}});
  BatchReader reader(dataset, in_order(7, 4, false), chips.shapes(), {});
  reader.begin(1, 0, chips.memory());
  testing::expect_error(Errc::invalid_argument, {"row 3", "pad_last"}, [&] { reader.finish(); });
}

/// Whichever thread fails first, the loop gets the error of the first broken row.
TEST(BatchReader, ThrowsTheFirstRowsExceptionAtItsBatch) {
  const Mesh mesh({1}, {"data"});
  for (int round = 0; round < 20; ++round) {
    Chips first(mesh, {0}, 32, {Shape{1}}, {{{}, {}}});
    Chips second = first;
    const auto dataset = std::make_shared<const Numbered>(64, std::vector<Shape>{{1}},
                                                          std::set<std::int64_t>{35, 41, 63});
    BatchReader reader(dataset, in_order(64, 32), first.shapes(),
                       {.num_threads = 4, .at_a_time = 2});
    reader.begin(0, 0, first.memory());
    reader.begin(1, 0, second.memory());
    EXPECT_EQ(reader.finish().num_items, 32);
    testing::expect_error(Errc::loop_failed, {"numbered", "item 35", "broken"},
                          [&] { reader.finish(); });
  }
}

TEST(BatchReader, WritesNothingOnceItIsDropped) {
  const Mesh mesh({1}, {"data"});
  for (int round = 0; round < 50; ++round) {
    Chips chips(mesh, {0}, 256, {Shape{4}}, {{{}, {}}});
    const auto dataset = std::make_shared<const Numbered>(256, std::vector<Shape>{{4}});
    BatchReader reader(dataset, in_order(256, 256), chips.shapes(), {.num_threads = 3});
    reader.begin(0, 0, chips.memory());
    reader.drop();
    const auto then = chips.shards;
    Chips other = chips;
    reader.begin(0, 0, other.memory());
    reader.finish();
    EXPECT_EQ(chips.shards, then);
  }
}

}  // namespace
}  // namespace weft::batch_reader_test
