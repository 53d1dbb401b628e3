#include <weft/nn/transforms.hpp>

#include <algorithm>

#include <gtest/gtest.h>

#include <weft/nn/layers.hpp>
#include <weft/ops/elementwise.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::checkpoint_test {
namespace {

using testing::f32;
using testing::SimulateRuntime;
using Floats = std::vector<float>;

constexpr std::int64_t kSize = 16;
constexpr std::int64_t kBlocks = 4;

struct Block : Module {
  using Module::Module;
  Linear up{*this, "up", {.in_features = kSize, .out_features = 4 * kSize}};
  Linear down{*this, "down", {.in_features = 4 * kSize, .out_features = kSize}};
  Tensor operator()(const Tensor& x) const {
    return x + down(dropout(checkpoint_name(gelu(up(x), Gelu::tanh), "hidden"), 0.2));
  }
};

struct Net : Module {
  std::vector<std::unique_ptr<Block>> blocks;
  Net() {
    for (std::int64_t i = 0; i < kBlocks; ++i) {
      blocks.push_back(std::make_unique<Block>(*this, fmt::format("block{}", i)));
    }
  }
};

enum class Kind { whole, again, dots, named };

struct Trained {
  std::vector<Floats> parameters;
  std::uint64_t temp_bytes = 0;
  std::int64_t dots = 0;
  std::vector<CollectiveSummary> met;
};

Trained train(Kind kind, const Mesh& mesh, bool sharded = false) {
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  manual_seed(4);
  Net net;
  if (sharded) fsdp(net, mesh);
  SGD optimizer(net.parameters(), {.lr = 0.05});
  for (int step = 0; step < 2; ++step) {
    Floats elements(64 * kSize);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(i * 5 % 13) / 13;
    }
    Tensor x = f32(elements, {64, kSize});
    data_parallel(std::vector{x}, mesh);
    for (const auto& block : net.blocks) {
      const auto forward = [&] { return (*block)(x); };
      switch (kind) {
        case Kind::whole: x = forward(); break;
        case Kind::again: x = checkpoint(forward); break;
        case Kind::dots: x = checkpoint(forward, {.save_dots = true}); break;
        case Kind::named: x = checkpoint(forward, {.save_names = {"hidden"}}); break;
      }
    }
    optimizer.step(grad(mean(x * x), net.parameters()));
    x = Tensor();
    sync();
  }
  Trained trained;
  const Plan& plan = *runtime.plans.front();
  trained.temp_bytes = plan.temp_bytes;
  trained.dots = std::ranges::count(plan.program.op_kinds, OpKind::dot_general);
  trained.met = collectives(plan, mesh);
  EXPECT_EQ(std::ranges::count(plan.program.op_kinds, OpKind::optimization_barrier), 0);
  for (const Parameter& parameter : net.parameters()) {
    trained.parameters.push_back(parameter.to_vector());
  }
  return trained;
}

// Each block has two products in the forward pass. In the backward pass each product has the
// gradients of both operands, except that the input of the first block has none.
constexpr std::int64_t kDots = kBlocks * 6 - 1;

TEST(CheckpointRegion, GivesTheSameBitsFromLessMemory) {
  const Mesh mesh({2}, {"data"});
  const Trained whole = train(Kind::whole, mesh);
  EXPECT_EQ(whole.dots, kDots);
  const Trained again = train(Kind::again, mesh);
  EXPECT_EQ(again.parameters, whole.parameters);
  EXPECT_LT(again.temp_bytes, whole.temp_bytes * 2 / 3);
  EXPECT_EQ(again.dots, kDots + kBlocks) << "up() again; down()'s result isn't needed";
}

TEST(CheckpointRegion, KeepsWhatThePolicySays) {
  const Mesh mesh({2}, {"data"});
  const Trained whole = train(Kind::whole, mesh);
  const Trained again = train(Kind::again, mesh);
  const Trained dots = train(Kind::dots, mesh);
  EXPECT_EQ(dots.parameters, whole.parameters);
  EXPECT_EQ(dots.dots, kDots);
  EXPECT_LT(dots.temp_bytes, whole.temp_bytes);
  EXPECT_GT(dots.temp_bytes, again.temp_bytes);
  const Trained named = train(Kind::named, mesh);
  EXPECT_EQ(named.parameters, whole.parameters);
  EXPECT_GE(named.temp_bytes, again.temp_bytes);
}

TEST(CheckpointRegion, GathersShardedParametersAgain) {
  const Mesh mesh({4}, {"data"});
  const auto gathers = [&](Kind kind) {
    const Trained trained = train(kind, mesh, true);
    return std::ranges::count(trained.met, OpKind::all_gather, &CollectiveSummary::kind);
  };
  // Each block gathers the weight and the bias of up() again. No other gather is recomputed.
  EXPECT_EQ(gathers(Kind::again), gathers(Kind::whole) + 2 * kBlocks);
}

}  // namespace
}  // namespace weft::checkpoint_test
