// Tests what plans for several hosts send over the network, and which of them are refused.

#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/step_cost.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/mlp.hpp"
#include "tests/support/target.hpp"

namespace weft::tier_cost_test {
namespace {

using testing::expect_error;
using testing::Mlp;

/// Returns a perceptron that is trained by data parallelism, whose loss and gradients have
/// kSummedBytes.
Mlp perceptron() {
  Mlp mlp;
  mlp.batch = 96;
  mlp.in = 960;
  mlp.hidden = 1024;
  mlp.out = 63;
  mlp.x = mlp.y = PartitionSpec{{"data"}, {}};
  mlp.fc1 = mlp.fc2 = PartitionSpec{{}, {}};
  return mlp;
}
constexpr double kSummedBytes = 4.0 * (1024 * 960 + 1024 + 63 * 1024 + 1);

/// One op of a chip's plan over all hosts of "data".
Plan plan_of(const Mesh& mesh, const std::string& output) {
  return compile(parse_program(R"(program(%0: f32[48,16] data "x" [{"data"}, {}]) {
  %1 = reverse %0 {dims = [1]} : f32[48,16]
  return %1 "y" )" + output + "\n}",
                               mesh),
                 mesh, kCpuTarget);
}

TEST(TierCost, OfGradientsIsTheLeastThatHostsMustSend) {
  for (const auto& [chips, hosts] : {std::pair<std::int64_t, std::int64_t>{4, 2}, {2, 4}, {8, 3}}) {
    for (const bool has_momentum : {false, true}) {
      const Mesh mesh = HybridMesh{{chips}, {hosts}, {"data"}}.mesh();
      Mlp mlp = perceptron();
      mlp.momentum = has_momentum;
      // With a limit of 0 the chips of a host share the state of the optimizer.
      const Plan plan =
          compile(mlp.program(mesh), mesh, testing::cpu_target_with({.shared_bytes_min = 0}));
      const double least = 2.0 * static_cast<double>(hosts - 1) / static_cast<double>(hosts);
      const auto sent = static_cast<double>(run_cost(plan, mesh).dcn_bytes);
      EXPECT_GE(sent, least * kSummedBytes) << mesh.to_string();
      EXPECT_LE(sent, 1.02 * least * kSummedBytes) << mesh.to_string();
    }
  }
}

TEST(TierCost, OfAGatherSendsTheTensorOnce) {
  const Mesh mesh = HybridMesh{{4}, {3}, {"data"}}.mesh();
  const Plan plan = plan_of(mesh, "[{}, {}]");
  EXPECT_EQ(run_cost(plan, mesh).dcn_bytes, 48 * 16 * 4 * 2 / 3);
  // Only this plan's collectives between hosts use the network.
  std::int64_t within = 0;
  for (const CollectiveSummary& one : collectives(plan, mesh)) {
    if (one.tier == Tier::ici) {
      EXPECT_EQ(one.dcn_bytes, 0);
      EXPECT_EQ(one.axes, std::vector<std::string>{"data:ici"});
      ++within;
    } else {
      EXPECT_EQ(one.axes, std::vector<std::string>{"data:dcn"});
    }
  }
  EXPECT_EQ(within, 1);
}

TEST(TierCost, OfAPermuteCountsChipsThatReceiveFromAnotherHost) {
  const Mesh mesh = HybridMesh{{2}, {2}, {"data"}}.mesh();
  const Plan plan = compile(parse_program(R"(program(%0: f32[8] data "x" [{"data":0}]) {
  %1 = tanh %0 : f32[8]
  return %1 "y" [{"data":1}]
})",
                                          mesh),
                            mesh, kCpuTarget);
  const std::vector<CollectiveSummary> all = collectives(plan, mesh);
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(all[0].kind, OpKind::collective_permute);
  EXPECT_EQ(all[0].tier, Tier::dcn);
  // Chip 0 keeps its shard and so does chip 3. The other two exchange shards of 16 bytes.
  EXPECT_EQ(all[0].dcn_bytes, 16);
}

TEST(TierCost, RefusesACollectiveOfBothTiers) {
  const Mesh mesh = HybridMesh{{4}, {2}, {"data"}}.mesh();
  Plan plan = compile(perceptron().program(mesh), mesh, kCpuTarget);
  verify(plan, mesh);
  for (OpId op = 0; op < plan.program.num_ops(); ++op) {
    if (plan.program.kind(op) != OpKind::all_reduce) continue;
    Plan spoilt = plan;
    spoilt.program.attrs[spoilt.program.attr_begin[op]] =
        static_cast<std::int64_t>(AtomList{1, 2}.bits());
    expect_error(Errc::corrupt, {"meets both within hosts and between them"},
                 [&] { verify(spoilt, mesh); });
  }
}

TEST(TierCost, RunsInOneMemoryOrOnItsHosts) {
  const Mesh mesh = HybridMesh{{2, 2}, {2, 1}, {"data", "model"}}.mesh();
  const Plan plan = plan_of(mesh, "[{}, {}]");
  EXPECT_EQ(plan.dcn_shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(mesh_on(plan, mesh), mesh);
  EXPECT_EQ(mesh_on(plan, in_one_memory(mesh)), mesh);
  EXPECT_EQ(mesh_of(plan, mesh.device_ids()), mesh);
  expect_error(Errc::mesh_mismatch, {"(4,2)", "of (2,1) hosts", "of (1,2) hosts"}, [&] {
    mesh_on(plan, HybridMesh{{4, 1}, {1, 2}, {"data", "model"}}.mesh());
  });
  expect_error(Errc::mesh_mismatch, {"(4,2)", "(8)"}, [&] { mesh_on(plan, Mesh({8}, {"data"})); });
  expect_error(Errc::corrupt, {"another mesh"}, [&] { verify(plan, in_one_memory(mesh)); });
}

}  // namespace
}  // namespace weft::tier_cost_test
