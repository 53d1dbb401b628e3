#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/passes/propagate.hpp"
#include "spmd/plan/settle.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/mlp.hpp"
#include "tests/support/target.hpp"

namespace weft::shard_state_test {
namespace {

using testing::Mlp;

const Mesh kData({4}, {"data"});
const Target kShareAll = testing::cpu_target_with({.shared_bytes_min = 0});

/// Returns a data-parallel perceptron that is trained by SGD with momentum.
Mlp data_parallel() {
  Mlp mlp;
  mlp.x = PartitionSpec{{"data"}, {}};
  mlp.momentum = true;
  return mlp;
}

/// Returns the sharding of an input in the program that chips run.
std::string layout_of(const Plan& plan, const Mesh& mesh, std::string_view name) {
  for (const ProgramInput& input : plan.program.inputs) {
    if (input.name != name) continue;
    return Sharding::closed(input.sharding.dims)
        .to_string(mesh, plan.program.shape(input.value).size());
  }
  return "none";
}

std::ptrdiff_t count(const Plan& plan, OpKind kind) {
  return std::ranges::count(plan.program.op_kinds, kind);
}

/// Returns the sharding of the first layer's momentum.
std::string momentum_of(const Mlp& mlp, const Mesh& mesh = kData,
                        const Target& target = kShareAll) {
  return layout_of(compile(mlp.program(mesh), mesh, target), mesh, "fc1.weight.momentum");
}

constexpr const char* kSharded = R"([{"data"}, {}])";
constexpr const char* kWhole = "[{}, {}]";

TEST(ShardState, OfAnOptimizerWhoseGradientsAreAdded) {
  const Plan plan = compile(data_parallel().program(kData), kData, kShareAll);
  for (const char* weight : {"fc1.weight", "fc2.weight"}) {
    EXPECT_EQ(layout_of(plan, kData, weight), kWhole);
    EXPECT_EQ(layout_of(plan, kData, std::string(weight) + ".momentum"), kSharded);
  }
  EXPECT_EQ(count(plan, OpKind::reduce_scatter), 2);
  EXPECT_EQ(count(plan, OpKind::all_gather), 2);
}

TEST(ShardState, IsNotMarkedNorSmallNorOnChipsAlready) {
  Mlp mlp = data_parallel();
  EXPECT_EQ(momentum_of(mlp), kSharded);
  EXPECT_EQ(momentum_of(mlp, kData, testing::cpu_target_with({.shared_bytes_min = 8 * 8 * 4 + 1})),
            kWhole);
  mlp.fc1_momentum = PartitionSpec{{}, {}};
  EXPECT_EQ(momentum_of(mlp), kWhole);
  mlp.fc1_momentum = PartitionSpec{{}, {"data"}};
  EXPECT_EQ(momentum_of(mlp), R"([{}, {"data"}])");
}

TEST(ShardState, StaysWholeWhereNoChipsAddOrTheyDoNotDivideIt) {
  Mlp mlp = data_parallel();
  mlp.hidden = 6;
  EXPECT_EQ(momentum_of(mlp), kWhole);
  mlp = data_parallel();
  mlp.x = PartitionSpec{{}, {}};
  EXPECT_EQ(momentum_of(mlp), kWhole);
  EXPECT_EQ(momentum_of(data_parallel(), Mesh({1}, {"data"})), kWhole);
}

TEST(ShardState, LeavesOtherAxesToTheirMarks) {
  const Mesh mesh({2, 2}, {"data", "model"});
  Mlp mlp = data_parallel();
  mlp.fc1 = PartitionSpec{{}, {"model"}};
  EXPECT_EQ(momentum_of(mlp, mesh), R"([{"data"}, {"model"}])");
  mlp.fc1 = PartitionSpec{{"model"}, {}};
  EXPECT_EQ(momentum_of(mlp, mesh), R"([{"model"}, {}])") << "its parts wouldn't be one range";
}

/// 2 hosts have 2 chips each. The chips of a host share the state, and each host has all of it.
TEST(ShardState, IsSharedWithinAHostIfGradientsCrossHosts) {
  const Mesh hosts = HybridMesh{{2}, {2}, {"data"}}.mesh();
  const Plan plan = compile(data_parallel().program(hosts), hosts, kShareAll);
  EXPECT_EQ(layout_of(plan, hosts, "fc1.weight"), kWhole);
  EXPECT_EQ(layout_of(plan, hosts, "fc1.weight.momentum"), R"([{"data":1}, {}])");
  EXPECT_EQ(count(plan, OpKind::reduce_scatter), 2);
  EXPECT_EQ(count(plan, OpKind::all_gather), 2);
  for (const CollectiveSummary& one : collectives(plan, hosts)) {
    EXPECT_EQ(one.tier == Tier::dcn, one.axes == std::vector<std::string>{"data:dcn"});
    EXPECT_TRUE(one.tier == Tier::ici || one.kind == OpKind::all_reduce);
  }
  EXPECT_EQ(momentum_of(data_parallel(), HybridMesh{{1}, {4}, {"data"}}.mesh()), kWhole)
      << "a host has one chip";
}

TEST(ShardState, IsSettledAtOnce) {
  const Program program = data_parallel().program(kData);
  const Plan plan = compile(program, kData, kShareAll);
  const Plan later = compile(settled(program, plan), kData, kShareAll);
  EXPECT_EQ(to_text(later.program, kData), to_text(plan.program, kData));
}

/// Returns the layout of the state m of an update of p. `lines` compute the next m (%9) and the
/// next p (%10) from a gradient %5 that is summed over chips.
std::string layout_of_m(const std::string& lines) {
  const Program program = parse_program(R"(program(%0: f32[8,4] data "x" [{"data"}, {}],
      %1: f32[8,4] data "y" [{"data"}, {}], %2: f32[4,4] param "p" [{?}, {?}],
      %3: f32[4,4] opt_state "m" [{?}, {?}]) {
  %4 = tanh %0 : f32[8,4]
  %5 = dot_general %4, %1 {contracting = [0] x [0]} : f32[4,4]
)" + lines + R"(
  return %9 "m" [{?}, {?}] updates 3, %10 "p" [{?}, {?}] updates 2
})",
                                        kData);
  return layout_of(compile(program, kData, kShareAll), kData, "m");
}

TEST(ShardState, MayBeClippedByANorm) {
  EXPECT_EQ(layout_of_m(R"(  %6 = multiply %5, %5 : f32[4,4]
  %7 = reduce %6 {kind = add, dims = [0, 1]} : f32[]
  %8 = broadcast_in_dim %7 {dims = []} : f32[4,4]
  %11 = divide %5, %8 : f32[4,4]
  %9 = add %3, %11 : f32[4,4]
  %10 = subtract %2, %9 : f32[4,4])"),
            kSharded);
}

/// State that updates no parameter may be an average of parameters or accumulated gradients. It
/// isn't sharded, because a single worker may read it.
TEST(ShardState, StaysWholeIfNoParameterIsUpdatedByIt) {
  const std::string scaled = R"(  %6 = negate %5 : f32[4,4]
  %7 = negate %6 : f32[4,4]
  %8 = negate %7 : f32[4,4]
)";
  EXPECT_EQ(layout_of_m(scaled + R"(  %10 = subtract %2, %8 : f32[4,4]
  %9 = add %3, %10 : f32[4,4])"),
            kWhole);
  EXPECT_EQ(layout_of_m(scaled + R"(  %9 = add %3, %8 : f32[4,4]
  %10 = negate %2 : f32[4,4])"),
            kWhole);
}

TEST(ShardState, OfAVeryLongUpdate) {
  std::string lines = "  %6 = add %3, %5 : f32[4,4]\n  %7 = add %6, %6 : f32[4,4]\n";
  lines += "  %8 = negate %7 : f32[4,4]\n  %11 = negate %8 : f32[4,4]\n";
  int value = 11;
  for (; value < 20'000; ++value) {
    lines += fmt::format("  %{} = negate %{} : f32[4,4]\n", value + 1, value);
  }
  lines += fmt::format("  %9 = add %6, %{} : f32[4,4]\n", value);
  EXPECT_EQ(layout_of_m(lines + "  %10 = subtract %2, %9 : f32[4,4]"), kSharded);
}

TEST(ShardState, StaysWholeIfAnUpdateReadsMoreThanItsElement) {
  EXPECT_EQ(layout_of_m(R"(  %6 = add %3, %5 : f32[4,4]
  %7 = reduce %6 {kind = add, dims = [0]} : f32[4]
  %8 = broadcast_in_dim %7 {dims = [1]} : f32[4,4]
  %9 = add %6, %6 : f32[4,4]
  %10 = subtract %2, %8 : f32[4,4])"),
            kWhole)
      << "the parameter's update doesn't read the state";
  EXPECT_EQ(layout_of_m(R"(  %6 = add %3, %5 : f32[4,4]
  %7 = reduce %6 {kind = add, dims = [0]} : f32[4]
  %8 = broadcast_in_dim %7 {dims = [1]} : f32[4,4]
  %9 = multiply %6, %8 : f32[4,4]
  %10 = subtract %2, %9 : f32[4,4])"),
            kWhole);
}

}  // namespace
}  // namespace weft::shard_state_test
