/// Tests to_device_local() in jobs of several workers.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/jobs/run_loop.hpp"

namespace weft::local_batches_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using Floats = std::vector<float>;

constexpr std::int64_t kRows = 16;
constexpr std::int64_t kColumns = 6;

/// Returns the rows from `begin` to `end` of the batch for a step.
Floats rows(std::uint64_t step, std::int64_t begin, std::int64_t end) {
  Floats elements;
  for (std::int64_t i = begin * kColumns; i < end * kColumns; ++i) {
    elements.push_back(static_cast<float>((static_cast<std::int64_t>(step) * 37 + i * 11) % 23) /
                       23);
  }
  return elements;
}

std::vector<std::int32_t> labels(std::int64_t begin, std::int64_t end) {
  std::vector<std::int32_t> result;
  for (std::int64_t i = begin; i < end; ++i) result.push_back(static_cast<std::int32_t>(i % 4));
  return result;
}

/// Trains on batches. Each worker passes all their rows, or only its own rows if config["local"].
Loop train{"test.train_by_parts", [](TrainContext& ctx, const Config& config) {
             const bool local = config.at("local");
             const LocalPart part = local_part();
             const std::int64_t begin = local ? part.index * kRows / part.count : 0;
             const std::int64_t end = local ? (part.index + 1) * kRows / part.count : kRows;
             struct Net : Module {
               Linear fc1{*this, "fc1", {.in_features = kColumns, .out_features = 8}};
               Linear fc2{*this, "fc2", {.in_features = 8, .out_features = 4}};
             } net;
             SGD sgd(net.parameters(), {.lr = 0.5, .momentum = 0.9});
             auto step = compile([&](const Tensor& x, const Tensor& y) {
               const Tensor loss = cross_entropy(net.fc2(tanh(net.fc1(x))), y);
               sgd.step(grad(loss, net.parameters()));
               return loss;
             });
             Floats losses;
             while (ctx.step() < 6) {
               const Floats pixels = rows(ctx.step(), begin, end);
               const std::vector<std::int32_t> classes = labels(begin, end);
               Tensor x, y;
               if (local) {
                 x = to_device_local(pixels, {end - begin, kColumns});
                 y = to_device_local(classes, {end - begin});
               } else {
                 x = to_device(pixels, {kRows, kColumns});
                 y = to_device(classes, {kRows});
                 data_parallel({x, y}, *ctx.mesh());
               }
               losses.push_back(static_cast<float>(step(x, y).item()));
             }
             ctx.report({{"losses", losses}, {"index", part.index}, {"count", part.count}});
           }};

Floats losses(int workers, bool local, const SpmdConfig& spmd = {}) {
  const Result result = run_loop(train, workers, {{"local", local}},
                                 [&](TrainerOptions& options) { options.backend.spmd = spmd; });
  expect_ok(result);
  return result.ok() ? result.metrics["losses"].get<Floats>() : Floats();
}

/// The losses are equal in every bit, because each chip computes with the same elements.
TEST(LocalBatches, TrainAsGlobalOnesDo) {
  for (const SpmdConfig& spmd :
       {SpmdConfig{}, SpmdConfig{.mesh_shape = {4}, .axis_names = {"data"}},
        SpmdConfig{
            .mesh_shape = {2, 2}, .axis_names = {"data", "model"}, .device_ids = {2, 3, 0, 1}},
        SpmdConfig{.mesh_shape = {4}, .axis_names = {"data"}, .device_ids = {3, 1, 2, 0}}}) {
    EXPECT_EQ(losses(2, true, spmd), losses(2, false, spmd)) << spmd.mesh_shape.size();
  }
}

TEST(LocalBatches, OfOneProcessAreTheWholeBatch) { EXPECT_EQ(losses(0, true), losses(0, false)); }

/// The chips along axis `model` belong to both workers.
TEST(LocalBatches, AreCutAlongTheAxisOnWhichWorkersLie) {
  const Result result = run_loop(train, 2, {{"local", true}}, [](TrainerOptions& options) {
    options.backend.spmd = {.mesh_shape = {1, 4}, .axis_names = {"data", "model"}};
  });
  expect_ok(result);
  for (const Metrics& metrics : result.worker_metrics) EXPECT_EQ(metrics["count"], 2);
}

/// Each worker passes two rows that are filled with its rank.
Loop reads{
    "test.read_local", [](TrainContext& ctx) {
      const Tensor x = to_device_local(Floats(4, static_cast<float>(ctx.world_rank())), {2, 2});
      const Floats before = x.to_vector();
      const double total = sum(x).item();
      ctx.report({{"before", before}, {"total", total}, {"after", x.to_vector()}});
    }};

TEST(LocalBatches, AreReadWholeByEveryWorker) {
  const Result result = run_loop(reads, 2);
  expect_ok(result);
  for (const Metrics& metrics : result.worker_metrics) {
    EXPECT_EQ(metrics["before"], (Floats{0, 0, 0, 0, 1, 1, 1, 1}));
    EXPECT_EQ(metrics["after"], metrics["before"]);
    EXPECT_EQ(metrics["total"], 4);
  }
}

/// Passes different elements in workers that are at the same position of axis `data`, which is a
/// mistake, because they should pass the same part of the batch.
Loop differs{"test.differing_parts", [](TrainContext& ctx) {
               const Tensor x = to_device_local(Floats(4, static_cast<float>(ctx.world_rank() / 3)),
                                                {2, 2}, {.sharding = PartitionSpec{{"data"}}});
               const Tensor y = x * 2;
               sync();
             }};

TEST(LocalBatches, ThatDifferBetweenWorkersOfOnePartEndTheJob) {
  const Result result = run_loop(differs, 4, {}, [](TrainerOptions& options) {
    options.backend.spmd = {.mesh_shape = {2, 4}, .axis_names = {"data", "model"}};
  });
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, Errc::invalid_argument) << result.error->message;
  EXPECT_TRUE(result.error->message.find(
                  "part 1 of 2 of data.0 f32[4,2] (local_batches_test.cpp:") != std::string::npos)
      << result.error->message;
  EXPECT_TRUE(result.error->message.find("worker 2 against worker 3") != std::string::npos)
      << result.error->message;
}

}  // namespace
}  // namespace weft::local_batches_test
