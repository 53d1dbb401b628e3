// Tests custom ops on simulated chips: the operands that each chip gets, and the collectives.

#include <gtest/gtest.h>

#include <algorithm>

#include <weft/nn/module.hpp>
#include <weft/nn/transforms.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/custom_ops.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::custom_op_sharding_test {
namespace {

using testing::f32;
using testing::kCounted;
using testing::kCumsum;
using testing::kProduct;
using testing::kRowNorm;
using testing::kSoftClip;
using testing::numbers;
using testing::SimulateRuntime;
using testing::soft_clip;
using Floats = std::vector<float>;

struct Trained {
  Floats w;
  Floats limit;
  double loss = 0;
  std::vector<CollectiveSummary> met;
};

/// Trains a net for two steps, with every kind of factor, in custom or in ordinary ops. `spec`
/// shards w[6,5].
Trained train(bool custom, const Mesh& mesh, const PartitionSpec& spec, bool shards_data) {
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  Parameter w = make_parameter("w", numbers(30), {6, 5});
  Parameter limit = make_parameter("limit", Floats{1, 2, 3, 4, 5}, {5});
  mark_sharding(w, mesh, spec);
  Trained trained;
  for (int step = 0; step < 2; ++step) {
    const Tensor x = f32(numbers(48), {8, 6});
    if (shards_data) mark_sharding(x, mesh, {{"data"}, {}});
    const Tensor hidden = matmul(x, w);
    const Tensor clipped =
        custom ? custom_call(kSoftClip, {hidden, limit}) : soft_clip(hidden, limit);
    const Tensor norms = custom ? custom_call(kRowNorm, {clipped}) : sum(clipped * clipped, {1});
    Tensor loss = mean(norms);
    const std::vector<Tensor> grads = grad(loss, std::vector<Tensor>{w, limit});
    w.assign(w - 0.01 * grads[0]);
    limit.assign(limit - 0.01 * grads[1]);
    sync();
    trained.loss = loss.item();
  }
  trained.w = w.to_vector();
  trained.limit = limit.to_vector();
  trained.met = collectives(*runtime.plans.front(), mesh);
  return trained;
}

/// Shards of 5 columns over 2 or 4 chips have padding, so the op gets all 5 columns on each chip.
TEST(CustomOp, TrainsAsOrdinaryOpsDoUnderEverySharding) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const Trained expected = train(false, mesh, {{}, {}}, false);
  const auto close = [](const Floats& a, const Floats& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
  };
  for (const PartitionSpec& spec : std::vector<PartitionSpec>{{{}, {}},
                                                              {{"data"}, {}},
                                                              {{}, {"model"}},
                                                              {{"model"}, {"data"}},
                                                              {{}, {"data", "model"}},
                                                              {{"data", "model"}, {}}}) {
    for (const bool shards_data : {false, true}) {
      const Trained trained = train(true, mesh, spec, shards_data);
      close(trained.w, expected.w);
      close(trained.limit, expected.limit);
      EXPECT_NEAR(trained.loss, expected.loss, 1e-5);
    }
  }
}

/// On each chip the gradients of all micro-batches are added up before they are summed over chips.
TEST(CustomOp, IsReducedOnceForAllMicroBatches) {
  std::vector<Floats> grads;
  for (const std::int64_t parts : {1, 2, 4}) {
    const Mesh mesh({2}, {"data"});
    SimulateRuntime runtime(mesh);
    const RuntimeScope scope(runtime);
    const Parameter w = make_parameter("w", numbers(6), {3, 2});
    const Tensor x = f32(numbers(24), {8, 3});
    mark_sharding(x, mesh, {{"data"}, {}});
    const auto [loss, of_w] =
        micro_batches(parts, std::vector{x}, std::vector{w}, [&](std::span<const Tensor> part) {
          const Tensor y = custom_call(kProduct, {part[0], w});
          return mean(y * y);
        });
    grads.push_back(of_w[0].to_vector());
    const Plan& plan = *runtime.plans.front();
    EXPECT_EQ(collectives(plan, mesh).size(), 1U) << parts;  // one bucket with the loss
    EXPECT_EQ(std::ranges::count(plan.program.op_kinds, OpKind::custom_call), 2 * parts);
  }
  for (const Floats& each : grads) {
    for (std::size_t i = 0; i < each.size(); ++i) EXPECT_NEAR(each[i], grads[0][i], 1e-5) << i;
  }
}

/// Returns the collectives of a program that applies `op` to x[4,8] with the sharding `spec`.
std::vector<OpKind> met(const CustomOp& op, const PartitionSpec& spec) {
  const Mesh mesh({2, 2}, {"data", "model"});
  SimulateRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const Tensor x = f32(numbers(32), {4, 8});
  mark_sharding(x, mesh, spec);
  const Tensor y = custom_call(op, {x});
  sync();
  std::vector<OpKind> kinds;
  for (const CollectiveSummary& call : collectives(*runtime.plans.front(), mesh)) {
    kinds.push_back(call.kind);
  }
  return kinds;
}

TEST(CustomOp, MeetsOthersAsItsRuleSays) {
  EXPECT_EQ(met(kCounted, {{"data"}, {"model"}}), (std::vector<OpKind>{}));
  EXPECT_EQ(met(kCumsum, {{"data"}, {}}), (std::vector<OpKind>{}));
  EXPECT_EQ(met(kCumsum, {{"data"}, {"model"}}), (std::vector<OpKind>{OpKind::all_gather}));
  EXPECT_EQ(met(kRowNorm, {{"data"}, {"model"}}), (std::vector<OpKind>{OpKind::all_reduce}));
}

}  // namespace
}  // namespace weft::custom_op_sharding_test
