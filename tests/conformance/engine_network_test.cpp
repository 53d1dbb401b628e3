// Tests engines on several hosts: every host has its own memory, and wires connect it to the
// other hosts.

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include <weft/sharding/chip.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/reference_engine.hpp"
#include "tests/support/target.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/network/network_tier.hpp"

namespace weft::engine_network_test {
namespace {

using testing::EngineMesh;
using testing::expect_error;
using testing::MakeEngine;
using testing::WireGrid;

class EnginesOfHosts : public ::testing::TestWithParam<MakeEngine> {
 protected:
  EngineMesh chips() {
    return EngineMesh(
        hosts,
        {.make = GetParam(),
         .network = [this](JobMemory& memory, const Mesh& mesh, int position, WaitPolicy policy) {
           return std::make_unique<NetworkTier>(
               memory, mesh, position, wires.of(mesh.device_at(position)), BoardWriter(), policy);
         }});
  }

  /// Two hosts of two chips: "data" is between hosts, "model" within them.
  const Mesh hosts = HybridMesh{{1, 2}, {2, 1}, {"data", "model"}}.mesh();
  const WireGrid wires{hosts.size()};
};

/// Returns a program with two outputs: the sum of x, which is sharded over both axes, and 2 * x,
/// which is gathered.
Program of_both_tiers(const Mesh& mesh) {
  Program program;
  Builder b(program);
  const std::array<std::int64_t, 2> shape{4, 4};
  const ValueId x = program.add_input({DType::f32, {4, 4}}, InputKind::data, "x",
                                      Sharding::from_spec(mesh, {{"data"}, {"model"}}, shape, "x"));
  const std::array<std::int64_t, 2> both{0, 1};
  program.add_output(b.reduce(ReduceKind::add, x, both), "sum", Sharding::closed());
  program.add_output(b.binary(OpKind::add, x, x), "twice", Sharding::closed());
  return program;
}

TEST_P(EnginesOfHosts, RunAPlanWhoseCollectivesCrossHosts) {
  const Program program = of_both_tiers(hosts);
  // The chips of one host share a gathered value; chips of different hosts don't.
  const Plan plan = compile(program, hosts, testing::cpu_target_with({.shared_bytes_min = 0}));
  std::array<int, 2> calls{};
  bool reduces_between_hosts = false;
  for (const CollectiveSummary& collective : collectives(plan, hosts)) {
    const Tier tier = tier_of(collective.atoms, hosts);
    ++calls[static_cast<std::size_t>(tier)];
    if (tier == Tier::dcn && collective.kind == OpKind::all_reduce) reduces_between_hosts = true;
  }
  EXPECT_TRUE(reduces_between_hosts);
  EXPECT_GE(calls[0], 1);
  EXPECT_GE(calls[1], 2);
  EXPECT_GT(plan.shared_bytes, 0U);

  Elements x;
  for (int i = 0; i < 16; ++i) x.push_back(i * i);
  const std::vector<Elements> expected = interpret(program, std::vector<Elements>{x});
  EngineMesh mesh = chips();
  const testing::MeshPlan loaded = mesh.load(plan);
  for (const auto schedule :
       {EngineMesh::Schedule::one_thread, EngineMesh::Schedule::thread_per_chip}) {
    EXPECT_EQ(testing::join(plan, hosts, mesh.run(loaded, std::vector<Elements>{x}, schedule)),
              expected);
  }
}

TEST_P(EnginesOfHosts, CarryOutTheCollectivesOfCodeOfTheLoopsOwn) {
  EngineMesh mesh = chips();
  std::array<std::array<float, 3>, 4> sums{};
  {
    std::vector<std::jthread> threads;
    for (int position = 0; position < 4; ++position) {
      threads.emplace_back([&, position] {
        const auto p = static_cast<std::size_t>(position);
        sums[p].fill(static_cast<float>(1 << position));
        mesh.engine(position).call(1, 0, [&](Chip& self) {
          self.all_reduce(sums[p][0]);
          self.all_reduce(sums[p][1], {"data"});
          self.all_reduce(sums[p][2], {"model"});
        });
      });
    }
  }
  EXPECT_EQ(sums[0], (std::array<float, 3>{15, 5, 3}));
  EXPECT_EQ(sums[1], (std::array<float, 3>{15, 10, 3}));
  EXPECT_EQ(sums[2], (std::array<float, 3>{15, 5, 12}));
  EXPECT_EQ(sums[3], (std::array<float, 3>{15, 10, 12}));
}

INSTANTIATE_TEST_SUITE_P(Engines, EnginesOfHosts,
                         ::testing::Values(testing::make_cpu_engine,
                                           testing::make_reference_engine),
                         [](const auto& tested) {
                           return tested.index == 0 ? "cpu" : "reference";
                         });

TEST(CpuEngine, CopiesNothingFromAnotherHost) {
  const Mesh hosts = HybridMesh{{1, 2}, {2, 1}, {"data", "model"}}.mesh();
  const WireGrid wires(hosts.size());
  EngineMesh mesh(
      hosts, {.network = [&](JobMemory& memory, const Mesh& of, int position, WaitPolicy policy) {
        return std::make_unique<NetworkTier>(memory, of, position, wires.of(of.device_at(position)),
                                             BoardWriter(), policy);
      }});
  const std::uint64_t at = mesh.memory().buffers_offset();
  for (int position = 0; position < 4; ++position) mesh.engine(position).reserve(at, 128);
  mesh.engine(3).copy_from(2, at, at + 64, 64);
  expect_error(Errc::unavailable, {"chip 3", "chip 1", "another host"},
               [&] { mesh.engine(3).copy_from(1, at, at + 64, 64); });
}

}  // namespace
}  // namespace weft::engine_network_test
