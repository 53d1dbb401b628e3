#include <weft/data/device_loader.hpp>

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/numbered_dataset.hpp"

namespace weft::device_loader_test {
namespace {

using testing::expect_error;
using testing::Numbered;
using testing::TemporaryFolder;
using Loop = std::function<void(TrainContext&)>;

class Loaders : public ::testing::Test {
 protected:
  Result fit(const Loop& loop, const std::vector<std::int64_t>& mesh = {2, 2},
             RunConfig run = {}) const {
    run.name = "loaders";
    run.storage_path = folder_.path() + "/runs";
    run.checkpoint.path = folder_.path() + "/saved";
    const std::vector<std::string> axes{"data", "model"};
    return Trainer([&](TrainContext& ctx) { loop(ctx); },
                   {.scaling = {.num_workers = 0},
                    .backend = {.spmd = {.mesh_shape = mesh,
                                         .axis_names = {axes.begin(),
                                                        axes.begin() +
                                                            static_cast<long>(mesh.size())}}},
                    .run = run})
        .fit();
  }
  void run(const Loop& loop, const std::vector<std::int64_t>& mesh = {2, 2},
           const RunConfig& config = {}) const {
    const Result result = fit(loop, mesh, config);
    ASSERT_TRUE(result.ok()) << result.error->message;
  }
  TemporaryFolder folder_;
};

std::shared_ptr<const Numbered> numbered(std::int64_t size) {
  return std::make_shared<const Numbered>(size, std::vector<Shape>{{3}, {}});
}

DatasetPtr numbered_rows(std::int64_t size, std::int64_t length) {
  return std::make_shared<const Numbered>(size, std::vector<Shape>{{length}});
}

/// Returns the items of a batch, which are the numbers in its field "x0".
std::vector<std::int64_t> items_of(const Batch& batch) {
  std::vector<std::int64_t> items;
  std::vector<float> elements = batch["x0"].to_vector();
  elements.resize(static_cast<std::size_t>(batch.num_items()) * 3);
  for (std::size_t i = 0; i < elements.size(); i += 3) {
    items.push_back(static_cast<std::int64_t>(elements[i]) / 100);
    EXPECT_EQ(elements[i + 2], Numbered::element(items.back(), 0, 2));
  }
  return items;
}

TEST_F(Loaders, GiveTheSamplersBatchesOnAnyMesh) {
  const DistributedSampler sampler({.size = 50, .batch_size = 8, .seed = 5});
  for (const std::vector<std::int64_t>& mesh :
       {std::vector<std::int64_t>{1}, {4}, {2, 2}, {1, 3}, {8}}) {
    run(
        [&](TrainContext& ctx) {
          DeviceLoader train(numbered(50), {.batch_size = 8, .shuffle = true, .num_threads = 2});
          EXPECT_EQ(train.steps_per_epoch(), 6U);
          std::uint64_t step = 0;
          while (train.epoch() < 3) {
            for (const Batch& batch : train) {
              EXPECT_EQ(ctx.step(), step);
              std::vector<std::int64_t> expected;
              for (const Item& item : sampler.batch(step)) expected.push_back(item.index);
              EXPECT_EQ(items_of(batch), expected) << "step " << step;
              EXPECT_EQ(batch["x1"].shape(), (Shape{8}));
              EXPECT_EQ(batch[1].to_vector()[3], Numbered::element(expected[3], 1, 0));
              EXPECT_FALSE(batch.weight().defined());
              ++step;
            }
          }
          EXPECT_EQ(step, 18U);
          EXPECT_EQ(ctx.step(), 18U);
        },
        mesh, {.seed = 5});
  }
}

TEST_F(Loaders, TrainAsDataFromTheHost) {
  struct Net : Module {
    Linear fc{*this, "fc", {.in_features = 3, .out_features = 1}};
  };
  const auto train = [&](bool loads) {
    std::vector<float> weights;
    run([&](TrainContext& ctx) {
      Net net;
      SGD sgd(net.parameters(), {.lr = 1e-9});
      const auto step = [&](const Tensor& x) {
        const Tensor loss = mean(net.fc(x) * net.fc(x));
        sgd.step(grad(loss, net.parameters()));
        sync();
      };
      DeviceLoader loader(numbered(64), {.batch_size = 8, .device_prefetch_size = 3});
      while (ctx.step() < 40) {
        if (loads) {
          for (const Batch& batch : loader) step(batch["x0"]);
        } else {
          std::vector<float> x;
          for (std::int64_t row = 0; row < 8; ++row) {
            const std::int64_t item = static_cast<std::int64_t>(ctx.step() % 8) * 8 + row;
            for (std::int64_t i = 0; i < 3; ++i) x.push_back(Numbered::element(item, 0, i));
          }
          const Tensor data = to_device(x, {8, 3});
          mark_sharding(data, *mesh(), {{"data"}, {}});
          step(data);
        }
      }
      weights = net.fc.weight.to_vector();
      EXPECT_EQ(counter_value("UncachedCompile"), 1U);
    });
    return weights;
  };
  EXPECT_EQ(train(true), train(false));
}

/// Training on pictures as bytes gives the same results as training on the same numbers as f32, but
/// sends only a quarter of the bytes to the chips.
TEST_F(Loaders, SendPicturesAsBytes) {
  constexpr std::int64_t kCount = 16;
  const Shape picture{1, 6, 6};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(kCount * picture.num_elements()));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(37 * i);
  const std::vector<float> floats(bytes.begin(), bytes.end());
  struct Net : Module {
    Conv2d conv{*this, "conv", {.in_channels = 1, .out_channels = 2, .kernel_size = 3}};
  };
  const auto train = [&](const DatasetPtr& pictures) {
    std::vector<float> weights;
    double sent = 0;
    run(
        [&](TrainContext& ctx) {
          Net net;
          SGD sgd(net.parameters(), {.lr = 1e-2});
          auto step = compile([&](const Tensor& x) {
            const Tensor y = net.conv(cast(x, DType::f32) / 255.0);
            sgd.step(grad(mean(y * y), net.parameters()));
          });
          DeviceLoader loader(pictures, {.batch_size = 8});
          const double before = metric_data("OutboundData").total;
          while (ctx.step() < 6) {
            for (const Batch& batch : loader) step(batch["x"]);
          }
          sent = metric_data("OutboundData").total - before;
          weights = net.conv.weight.to_vector();
        },
        {2});
    return std::pair(weights, sent);
  };
  const auto [of_bytes, bytes_sent] = train(tensors({{"x", bytes, picture}}));
  const auto [of_floats, floats_sent] = train(tensors({{"x", floats, picture}}));
  EXPECT_EQ(of_bytes, of_floats);
  EXPECT_EQ(floats_sent - bytes_sent, 6 * 8 * 36 * 3);
}

TEST_F(Loaders, EndTheStepOnce) {
  run([&](TrainContext& ctx) {
    DeviceLoader loader(numbered(12), {.batch_size = 4});
    for (const Batch& batch : loader) {
      if (ctx.step() == 1) sync();
      (void)batch;
    }
    EXPECT_EQ(ctx.step(), 3U);
  });
  const Result twice = fit([&](TrainContext&) {
    DeviceLoader loader(numbered(12), {.batch_size = 4});
    for (const Batch& batch : loader) {
      (void)batch;
      sync();
      sync();
    }
  });
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error->message.find("2 steps ended"), std::string::npos) << twice.error->message;
  EXPECT_NE(twice.error->message.find("device_loader_test.cpp:"), std::string::npos);
}

TEST_F(Loaders, GiveSeveralBatchesToAStep) {
  run([&](TrainContext& ctx) {
    DeviceLoader loader(numbered(24), {.batch_size = 4, .batches_per_execution = 3});
    EXPECT_EQ(loader.steps_per_epoch(), 2U);
    std::vector<std::uint64_t> steps;
    std::vector<std::int64_t> first;
    for (const Batch& batch : loader) {
      steps.push_back(ctx.step());
      first.push_back(items_of(batch).front());
    }
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(first, (std::vector<std::int64_t>{0, 4, 8, 12, 16, 20}));
    DeviceLoader uneven(numbered(20), {.batch_size = 4, .batches_per_execution = 3});
    expect_error(Errc::invalid_argument, {"3", "5 batches"}, [&] { uneven.epoch(); });
  });
}

TEST_F(Loaders, GoOnInTheMiddleOfAnEpoch) {
  std::vector<std::vector<std::int64_t>> straight;
  std::vector<std::vector<std::int64_t>> resumed;
  const auto loop = [](std::vector<std::vector<std::int64_t>>& seen, std::uint64_t steps) {
    return [&seen, steps](TrainContext& ctx) {
      DeviceLoader loader(numbered(50), {.batch_size = 8, .shuffle = true});
      CheckpointManager checkpoints;
      const Tensor weight = full({1}, 0);
      while (ctx.step() < steps) {
        for (const Batch& batch : loader) {
          seen.push_back(items_of(batch));
          sync();
          if (ctx.step() == steps) return;
          if (ctx.step() == 9) checkpoints.save({}, {.force = true});
        }
      }
    };
  };
  run(loop(straight, 15), {2, 2}, {.seed = 3});
  run(loop(resumed, 15), {4}, {.resume = "auto", .seed = 4});
  ASSERT_EQ(straight.size(), 15U);
  straight.erase(straight.begin(), straight.begin() + 9);
  EXPECT_EQ(resumed, straight);
}

TEST_F(Loaders, EvaluateWithoutEndingSteps) {
  run([&](TrainContext& ctx) {
    DeviceLoader test(numbered(22), {.batch_size = 4, .pad_last = true});
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<std::int64_t> items;
      std::int64_t count = 0;
      double weight = 0;
      for (const Batch& batch : test.all()) {
        const auto rows = items_of(batch);
        count += batch.num_items();
        weight += sum(batch.weight()).item();
        items.insert(items.end(), rows.begin(), rows.end());
      }
      std::vector<std::int64_t> all(22);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(items, all);
      EXPECT_EQ(count, 22);
      EXPECT_EQ(weight, 22);
      EXPECT_EQ(ctx.step(), 0U);
    }
  });
}

/// The mean over the items of an epoch doesn't depend on the rows that pad its last batch.
TEST_F(Loaders, WeightsLeaveOutWhatFillsUp) {
  run(
      [&](TrainContext&) {
        DeviceLoader whole(numbered(6), {.batch_size = 6});
        DeviceLoader padded(numbered(6), {.batch_size = 8, .pad_last = true});
        const auto losses = [](DeviceLoader& loader) {
          std::vector<double> found;
          for (const Batch& batch : loader.all()) {
            const Tensor x = batch["x0"] * 1e-3;
            const Tensor weight = batch.weight();
            const Tensor target = full(x.shape(), 0.25);
            const Tensor labels = cast(batch["x1"] * 0.0, DType::i32);
            found.push_back(mse_loss(x, target, {weight}).item());
            found.push_back(l1_loss(x, target, {weight}).item());
            found.push_back(binary_cross_entropy_with_logits(x, target, {weight}).item());
            found.push_back(cross_entropy(x, labels, {.sample_weight = weight}).item());
          }
          return found;
        };
        const auto expected = losses(whole);
        const auto seen = losses(padded);
        ASSERT_EQ(seen.size(), 4U);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(seen[i], expected[i], 1e-6) << i;
      },
      {1, 2});
}

TEST_F(Loaders, ReadNoFurtherAheadThanTheyAreAllowed) {
  run([&](TrainContext&) {
    const auto dataset = numbered(400);
    DeviceLoader loader(
        dataset,
        {.batch_size = 4, .num_threads = 2, .loader_prefetch_size = 2, .device_prefetch_size = 1});
    std::int64_t taken = 0;
    for (const Batch& batch : loader) {
      (void)batch;
      ++taken;
      EXPECT_LT(*dataset->reads().rbegin(), (taken + 3) * 4);
    }
    EXPECT_EQ(taken, 100);
    EXPECT_NE(metrics_report().find("LoaderWait"), std::string::npos);
  });
}

TEST_F(Loaders, CarryADatasetsExceptionToTheLoop) {
  const Result result = fit([&](TrainContext& ctx) {
    const auto dataset =
        std::make_shared<const Numbered>(40, std::vector<Shape>{{3}}, std::set<std::int64_t>{17});
    DeviceLoader loader(dataset, {.batch_size = 4});
    for (const Batch& batch : loader) {
      EXPECT_LT(ctx.step(), 4U);
      (void)batch;
    }
  });
  ASSERT_FALSE(result.ok());
  for (const char* word : {"numbered", "item 17", "broken"}) {
    EXPECT_NE(result.error->message.find(word), std::string::npos) << result.error->message;
  }
}

TEST_F(Loaders, RefuseWhatDoesNotFit) {
  run([&](TrainContext&) {
    const auto refuse = [](DatasetPtr dataset, const DeviceLoaderOptions& options,
                           std::initializer_list<std::string_view> words) {
      expect_error(Errc::invalid_argument, words, [&] { DeviceLoader loader(dataset, options); });
    };
    refuse(nullptr, {}, {"dataset is null", "device_loader_test.cpp:"});
    refuse(numbered(9), {.batch_size = 0}, {"batch_size = 0"});
    refuse(numbered(9), {.batch_size = 3}, {"the 2 parts", "dim 0, of size 3", "multiple of 2"});
    refuse(numbered(9), {.batch_size = 4, .bucket_lengths = {2}}, {"1 lengths", "0 names"});
    refuse(numbered(9), {.batch_size = 4, .bucket_lengths = {2, 2}, .bucket_fields = {"x0"}},
           {"[2, 2]", "greater than the one before"});
    refuse(numbered(9), {.batch_size = 4, .bucket_lengths = {4}, .bucket_fields = {"x0"}},
           {"'x0'", "f32[3]", "at least 4"});
    refuse(numbered(9), {.batch_size = 4, .bucket_lengths = {1}, .bucket_fields = {"z"}},
           {"no field 'z'"});
    refuse(numbered(3), {.batch_size = 4}, {"batch_size = 4 with 3 items"});
    refuse(numbered(9), {.batch_size = 4, .input_sharding = PartitionSpec{{"date"}}}, {"date"});
    refuse(numbered(9), {.batch_size = 4, .input_sharding = PartitionSpec{{"data"}, {"model"}}},
           {"'x0'", "don't divide dim 1, of size 3"});
    refuse(numbered(9), {.batch_size = 4, .field_sharding = {{"y", {{"data"}}}}}, {"no field 'y'"});
    refuse(numbered(9), {.batch_size = 4, .num_threads = 0}, {"num_threads = 0"});
    refuse(numbered(9), {.batch_size = 4, .loader_prefetch_size = 0}, {"loader_prefetch_size"});
    DeviceLoader loader(numbered(9), {.batch_size = 4});
    const Batch batch = *loader.begin();
    expect_error(Errc::invalid_argument, {"'y'", "'x0', 'x1'"}, [&] { batch["y"]; });
    expect_error(Errc::invalid_argument, {"no field 2"}, [&] { batch[2]; });
  });
  expect_error(Errc::not_found, {"training context"}, [] { DeviceLoader loader(numbered(9)); });
}

TEST_F(Loaders, MayBeLeftAndDropped) {
  run([&](TrainContext&) {
    for (int round = 0; round < 30; ++round) {
      DeviceLoader loader(numbered(400), {.batch_size = 40, .num_threads = 3});
      for (const Batch& batch : loader) {
        EXPECT_EQ(items_of(batch).front(), 0);
        sync();
        break;
      }
    }
  });
}

/// The rows of full batches are divided over 4 chips. The last batch has only 2 rows, so each chip
/// has both.
TEST_F(Loaders, GiveASmallerLastBatchAProgramOfItsOwn) {
  const auto losses_on = [&](const std::vector<std::int64_t>& mesh) {
    std::vector<double> losses;
    run(
        [&](TrainContext& ctx) {
          Parameter w = make_parameter("w", std::vector<float>{1, 2, 3}, {3});
          DeviceLoader loader(numbered(10), {.batch_size = 4, .drop_last = false});
          EXPECT_EQ(loader.batches_per_epoch(), 3U);
          std::vector<std::int64_t> rows;
          while (loader.epoch() < 2) {
            for (const Batch& batch : loader) {
              rows.push_back(batch["x0"].shape()[0]);
              EXPECT_EQ(batch.num_items(), rows.back());
              const Tensor loss = mean(batch["x0"] * w * 1e-3);
              w.assign(w - grad(loss, std::vector{w}).front() * 0.1);
              sync();
              losses.push_back(loss.item());
            }
          }
          EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 4, 2, 4, 4, 2}));
          EXPECT_EQ(counter_value("UncachedCompile"), 2U);
          EXPECT_EQ(ctx.step(), 6U);
        },
        mesh);
    return losses;
  };
  const std::vector<double> expected = losses_on({1});
  const std::vector<double> found = losses_on({4});
  ASSERT_EQ(found.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], expected[i], 1e-6 * expected[i]);
}

TEST_F(Loaders, CutSequencesToBuckets) {
  run([&](TrainContext&) {
    constexpr std::int64_t kLength = 16;
    std::vector<std::int64_t> lengths;
    std::vector<float> ids;
    for (std::int64_t item = 0; item < 24; ++item) {
      lengths.push_back(1 + item % 10);
      for (std::int64_t i = 0; i < kLength; ++i) {
        ids.push_back(i < lengths.back() ? static_cast<float>(100 * item + i) : -1.0F);
      }
    }
    const auto sampler = std::make_shared<const LengthSampler>(LengthSamplerOptions{
        .lengths = lengths, .batch_size = 4, .shuffle = false, .window_batches = 6});
    DeviceLoader loader(
        tensors({{"ids", ids, {kLength}}}),
        {.sampler = sampler, .bucket_lengths = {4, 8, 16}, .bucket_fields = {"ids"}});
    std::vector<std::int64_t> widths;
    for (const Batch& batch : loader) {
      const std::int64_t width = widths.emplace_back(batch["ids"].shape()[1]);
      const std::vector<float> elements = batch["ids"].to_vector();
      for (std::size_t row = 0; row < 4; ++row) {
        const auto item =
            static_cast<std::int64_t>(elements[row * static_cast<std::size_t>(width)]) / 100;
        for (std::int64_t i = 0; i < width; ++i) {
          const bool is_own = i < lengths[static_cast<std::size_t>(item)];
          EXPECT_EQ(elements[row * static_cast<std::size_t>(width) + static_cast<std::size_t>(i)],
                    is_own ? static_cast<float>(100 * item + i) : -1.0F);
        }
      }
    }
    EXPECT_EQ(widths, (std::vector<std::int64_t>{4, 4, 4, 8, 8, 16}));
    const MetricData padding = metric_data("LoaderPadding");
    EXPECT_EQ(padding.count, 6U);
    EXPECT_GT(padding.total, 0);
    EXPECT_LT(padding.total / 6, 0.4);
  });
  const Result result = fit([&](TrainContext&) {
    const auto sampler = std::make_shared<const LengthSampler>(
        LengthSamplerOptions{.lengths = {2, 9, 2, 2}, .batch_size = 4});
    DeviceLoader loader(numbered_rows(4, 9),
                        {.sampler = sampler, .bucket_lengths = {4, 8}, .bucket_fields = {"x0"}});
    (void)*loader.begin();
  });
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error->message.find("an item of length 9: expected at most 8"),
            std::string::npos)
      << result.error->message;
}

/// A stream of rows that never ends.
class Endless : public Stream {
 public:
  std::string name() const override { return "endless"; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  bool next_item(ItemMemory out) override {
    *reinterpret_cast<float*>(out[0].data()) = static_cast<float>(index());
    return true;
  }
  bool skip_item() override { return true; }
  void rewind_items() override {}

  const std::vector<Field> fields_{{"x", {DType::f32, {}}}};
};

TEST_F(Loaders, ReadAStreamInItsOrderOnly) {
  run([&](TrainContext&) {
    const auto rows = [] { return stream_items(std::make_unique<Endless>(), 100); };
    expect_error(Errc::invalid_argument, {"endless", "num_threads = 2", "shuffle_buffer"},
                 [&] { DeviceLoader(subset(rows(), 0, 8), {.batch_size = 4, .num_threads = 2}); });
    expect_error(Errc::invalid_argument, {"shuffle = true", "device_loader_test.cpp:"},
                 [&] { DeviceLoader(rows(), {.batch_size = 4, .shuffle = true}); });
    DeviceLoader loader(rows(), {.batch_size = 4});
    EXPECT_EQ((*loader.begin())["x"].to_vector(), (std::vector<float>{0, 1, 2, 3}));
  });
}

TEST_F(Loaders, WorkOnlyInTheirLoop) {
  std::optional<DeviceLoader> kept;
  run([&](TrainContext&) { kept.emplace(numbered(8), DeviceLoaderOptions{.batch_size = 4}); });
  expect_error(Errc::invalid_argument, {"numbered", "inside the loop"}, [&] { kept->begin(); });
}

}  // namespace
}  // namespace weft::device_loader_test
