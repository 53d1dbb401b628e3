/// Tests functions of shard_map() over chips of several processes.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/jobs/run_loop.hpp"

namespace weft::shard_map_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using Floats = std::vector<float>;
using P = PartitionSpec;

const SpmdConfig kRing{.mesh_shape = {4}, .axis_names = {"ring"}};

Tensor waves(const Shape& shape, float pace) {
  Floats elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = std::sin(pace * static_cast<float>(i));
  }
  return to_device(elements, shape);
}

Result run(const Loop& loop, int workers, const Config& config, const SpmdConfig& spmd) {
  Result result = run_loop(loop, workers, config, [&](TrainerOptions& options) {
    options.backend.spmd = spmd;
    if (workers == 0) options.scaling.chips_per_worker = 0;
  });
  expect_ok(result);
  return result;
}

/// Trains the weights of the queries, keys and values of an attention. If config["ring"] is true,
/// this is ring_attention() over the chips of axis "ring"; otherwise it is attention() on the whole
/// sequence.
Loop attends{"test.attends", [](TrainContext& ctx, const Config& config) {
               const Shape shape{2, 2, 16, 4};
               const bool ring = config.at("ring");
               const auto attend = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
                 if (!ring) return attention(q, k, v, {.causal = true});
                 const P parts{{}, {}, "ring"};
                 return shard_map(
                     [](const Tensor& own_q, const Tensor& own_k, const Tensor& own_v) {
                       return ring_attention(own_q, own_k, own_v, "ring", {.causal = true});
                     },
                     *ctx.mesh(), {parts, parts, parts}, parts)(q, k, v);
               };
               const Tensor x = waves(shape, 0.7F);
               const Tensor target = waves(shape, 0.3F);
               std::vector<Parameter> weights;
               for (const char* name : {"q", "k", "v"}) {
                 weights.push_back(make_parameter(name, Floats(16, 0.3F), {4, 4}));
                 init::uniform(weights.back(), -1, 1);
               }
               SGD sgd(weights, {.lr = 0.5});
               auto step = compile([&] {
                 const Tensor y =
                     attend(matmul(x, weights[0]), matmul(x, weights[1]), matmul(x, weights[2]));
                 const Tensor loss = mse_loss(y, target);
                 sgd.step(grad(loss, weights));
                 return loss;
               });
               Floats losses;
               while (ctx.step() < 8) losses.push_back(static_cast<float>(step().item()));
               ctx.report({{"losses", losses}});
             }};

TEST(ShardMapJobs, AttendInARingOfTwoProcesses) {
  const auto losses = [](int workers, bool ring, const SpmdConfig& spmd) {
    const Result result = run(attends, workers, {{"ring", ring}}, spmd);
    return result.ok() ? result.metrics["losses"].get<Floats>() : Floats();
  };
  const Floats whole = losses(0, false, {.mesh_shape = {1}, .axis_names = {"data"}});
  const Floats parts = losses(2, true, kRing);
  ASSERT_EQ(parts.size(), whole.size());
  ASSERT_EQ(whole.size(), 8U);
  EXPECT_LT(whole.back(), 0.99F * whole.front());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(parts[i], whole[i], 1e-5);
}

/// Calls all collectives, and computes the gradient of their results.
Loop moves{"test.moves_parts", [](TrainContext& ctx, const Config&) {
             const auto fn = [](const Tensor& part) {
               const Tensor gathered = all_gather(part, "ring", 1);
               return std::vector<Tensor>{
                   psum(part, "ring"),
                   pmax(part, "ring"),
                   pmin(part, "ring"),
                   pmean(part, "ring"),
                   reduce_scatter(gathered * 2.0, "ring", 1),
                   all_to_all(part, "ring", 1, 0),
                   ring_shift(part, "ring", -1),
                   ppermute(part, "ring", {{0, 2}, {3, 1}}),
                   part * cast(axis_index("ring"), DType::f32),
               };
             };
             const Tensor x = waves({8, 4}, 0.7F);
             const P whole, parts{"ring"}, columns{{}, "ring"};
             const auto all =
                 shard_map(fn, *ctx.mesh(), parts,
                           {whole, whole, whole, whole, parts, columns, parts, parts, parts})(x);
             Tensor loss = full({}, 0);
             for (const Tensor& y : all) loss = loss + sum(y * y * y);
             Metrics report{{"grad", grad(loss, std::array{x})[0].to_vector()}};
             for (const Tensor& y : all) report["all"].push_back(y.to_vector());
             sync();
             ctx.report(report);
           }};

TEST(ShardMapJobs, MovePartsBetweenTwoProcessesAsInOne) {
  const Metrics one = run(moves, 0, {}, kRing).metrics;
  const Metrics two = run(moves, 2, {}, kRing).metrics;
  ASSERT_EQ(one.at("all").size(), 9U);
  EXPECT_EQ(two.at("all"), one.at("all"));
  EXPECT_EQ(two.at("grad"), one.at("grad"));
}

}  // namespace
}  // namespace weft::shard_map_test
