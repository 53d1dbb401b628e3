// Tests that the error about an index out of range names the item of the dataset that has the
// index.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "tests/support/compiler_leaks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::faulty_item_test {
namespace {

using testing::TemporaryFolder;
using Loss = std::function<Tensor(const Batch& batch)>;

constexpr std::int64_t kItems = 24;
constexpr std::int64_t kFaulty = 17;

/// A dataset of items with 4 tokens and a label; item 17 has a 9 in both.
DatasetPtr sequences() {
  std::vector<std::int64_t> tokens(kItems * 4, 1);
  std::vector<std::int32_t> labels(kItems, 2);
  tokens[kFaulty * 4 + 2] = 9;
  labels[kFaulty] = 9;
  return tensors({{"tokens", std::move(tokens), {4}}, {"label", std::move(labels)}}, "made");
}

class FaultyItem : public ::testing::Test {
 protected:
  /// Returns the error of a job that computes the loss of each batch of a dataset.
  std::string error_of(const DatasetPtr& dataset, const DeviceLoaderOptions& options,
                       const Loss& loss, const std::vector<std::int64_t>& mesh = {2},
                       DebugMode debug = DebugMode::none) const {
    const Result result =
        Trainer(
            [&](TrainContext&) {
              DeviceLoader loader(dataset, options);
              for (const Batch& batch : loader) loss(batch).item();
            },
            {.scaling = {.num_workers = 0},
             .backend = {.spmd = {.mesh_shape = mesh, .axis_names = {"data"}}},
             .run = {.name = "faulty", .storage_path = folder_.path(), .seed = 3, .debug = debug}})
            .fit();
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.error->message;
  }
  static void expect_words(const std::string& message, std::initializer_list<const char*> words) {
    for (const char* word : words) EXPECT_NE(message.find(word), message.npos) << message;
  }

  TemporaryFolder folder_;
};

Tensor logits(std::int64_t rows) { return full({rows, 5}, 0.5); }

TEST_F(FaultyItem, IsNamedByEveryOpThatTakesAnIndex) {
  const std::vector<Loss> losses{
      [](const Batch& batch) { return cross_entropy(logits(4), batch["label"]); },
      [](const Batch& batch) {
        return sum(embedding(full({5, 3}, 1), batch["tokens"]));
      },
      [](const Batch& batch) {
        return sum(embedding(full({5, 3}, 1), slice(batch["tokens"], 1, 1, 4)));
      },
      [](const Batch& batch) { return sum(cast(one_hot(batch["label"], 5), DType::f32)); },
      [](const Batch& batch) {
        return sum(gather(full({4, 5}, 1), 1, unsqueeze(batch["label"], 1)));
      },
      [](const Batch& batch) {
        return sum(embedding(full({5, 3}, 1), transpose(batch["tokens"], 0, 1)));
      },
  };
  for (std::size_t i = 0; i < losses.size(); ++i) {
    SCOPED_TRACE(i);
    for (const std::vector<std::int64_t>& mesh :
         {std::vector<std::int64_t>{1}, {2}, std::vector<std::int64_t>{4}}) {
      expect_words(error_of(sequences(), {.batch_size = 4}, losses[i], mesh),
                   {"a label or index is 9: expected 0 to 4",
                    "faulty_item_test.cpp:", "of item 17 of made", "row 1 of batch 4 of epoch 0"});
    }
  }
}

TEST_F(FaultyItem, IsThatOfTheOrderInWhichItemsAreShuffled) {
  const std::string message =
      error_of(sequences(), {.batch_size = 4, .shuffle = true},
               [](const Batch& batch) { return cross_entropy(logits(4), batch["label"]); });
  expect_words(message, {"field 'label' of item 17 of made", "of epoch 0"});
}

TEST_F(FaultyItem, IsFoundInMicroBatches) {
  const Loss parts = [](const Batch& batch) {
    const Parameter w = make_parameter("w", std::vector<float>(5, 1), {5});
    const auto loss = [&](std::span<const Tensor> part) {
      return cross_entropy(broadcast_to(w, {2, 5}), part[0]);
    };
    return micro_batches(2, std::vector{batch["label"]}, std::vector<Parameter>{w}, loss).loss;
  };
  expect_words(error_of(sequences(), {.batch_size = 4}, parts, {1}), {"of item 17 of made"});
}

TEST_F(FaultyItem, IsFoundInEagerJobs) {
  if (testing::compiler_leaks_count()) GTEST_SKIP() << "the compiler leaks here";
  const Loss plain = [](const Batch& batch) { return cross_entropy(logits(4), batch["label"]); };
  expect_words(error_of(sequences(), {.batch_size = 4}, plain, {1}, DebugMode::eager),
               {"of item 17 of made"});
}

TEST_F(FaultyItem, HasThePathOfItsFile) {
  for (const char* name : {"a", "b", "c"}) {
    const std::string folder = folder_.path() + "/classes/" + name;
    std::filesystem::create_directories(folder);
    for (const int i : {0, 1}) std::ofstream(folder + "/" + std::to_string(i) + ".raw") << "x";
  }
  const DatasetPtr files =
      class_folder(folder_.path() + "/classes",
                   {.extensions = "raw",
                    .field = {"x", {DType::u8, {1}}},
                    .decode = [](std::span<const std::byte> file, const ItemWriter& out,
                                 ItemRandom&) { out.bytes(0)[0] = file[0]; }});
  const Loss loss = [](const Batch& batch) {
    return cross_entropy(full({1, 2}, 0.5), batch["label"]);
  };
  // The faulty file is item 4 of `files`, and item 2 of a subset of two concatenated datasets.
  for (const DatasetPtr& dataset :
       {files, subset(concat({subset(files, 0, 2), subset(files, 2, 6)}), {0, 1, 4})}) {
    expect_words(error_of(dataset, {.batch_size = 1}, loss, {1}),
                 {"field 'label' of item", "/classes/c/0.raw)"});
  }
}

TEST_F(FaultyItem, IsNotGuessedWhereTheIndexIsComputed) {
  const std::string message = error_of(sequences(), {.batch_size = 4}, [](const Batch& batch) {
    return cross_entropy(logits(4), cast(batch["label"], DType::i32) + 4);
  });
  expect_words(message, {"a label or index is 6: expected 0 to 4"});
  EXPECT_EQ(message.find("of item"), message.npos) << message;
}

}  // namespace
}  // namespace weft::faulty_item_test
