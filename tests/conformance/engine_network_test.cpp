// Tests engines on several hosts: every host has its own memory, and wires connect it to the
// other hosts.

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <weft/sharding/chip.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/program/custom_function.hpp"
#include "tests/support/chip_plan.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/reference_engine.hpp"
#include "tests/support/target.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/network/network_tier.hpp"
#include "transport/network/overlapped_tier.hpp"

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

/// The host whose chip this thread drives.
thread_local int host_of_thread = -1;
std::atomic<bool> has_host_0_updated = false;

void copy_operand(const CustomCall& call) {
  std::ranges::copy(call.operand<float>(0), call.result<float>().begin());
}

/// Host 1 comes to its update only when host 0 has made its own.
void wait_on_host_1(const CustomCall& call) {
  const auto deadline = std::chrono::steady_clock::now() + testing::kWirePatience;
  while (host_of_thread == 1 && !has_host_0_updated) {
    if (std::chrono::steady_clock::now() > deadline) {
      fail(Errc::timeout, "host 0 waits with an update that needs no sum");
    }
    ::sched_yield();
  }
  copy_operand(call);
}

void note_update(const CustomCall& call) {
  if (host_of_thread == 0) has_host_0_updated = true;
  copy_operand(call);
}

/// An update that needs no sum waits until other hosts have begun the step, and not until a running
/// sum has ended.
TEST(CpuEngine, UpdatesWhileASumGoesOn) {
  const Mesh hosts = HybridMesh{{1}, {2}, {"data"}}.mesh();
  Program program;
  Builder b(program);
  const TensorType matrix{DType::f32, {512, 512}};  // fills a bucket, and is too large to be held
  const auto custom = [&](const char* name, void (*kernel)(const CustomCall&), ValueId x) {
    const CustomFunction function{.target = {name, "a b -> a b"}, .kernel = kernel};
    return b.custom_call(register_custom_function(function).target, std::array{x}, matrix);
  };
  const ValueId w = program.add_input(matrix, InputKind::param, "w", Sharding::closed());
  const ValueId v = program.add_input(matrix, InputKind::param, "v", Sharding::closed());
  const ValueId gradient = b.dot_general(w, w, {{}, {}, {1}, {0}});
  const ValueId sum = b.all_reduce(hosts, gradient, hosts.axis_atoms(0), ReduceKind::add);
  const ValueId waited = custom("wait_on_host_1", wait_on_host_1, v);
  const ValueId updated = b.binary(OpKind::add, waited, waited);
  program.add_output(updated, "v", Sharding::closed(), 1);
  program.add_output(custom("note_update", note_update, updated), "noted", Sharding::closed());
  program.add_output(b.binary(OpKind::subtract, w, sum), "w", Sharding::closed(), 0);
  const Plan plan =
      testing::chip_plan(program, hosts, testing::cpu_target_with({.overlap_work_min = 0}));
  ASSERT_EQ(testing::kinds_of(plan),
            "compute collective compute update_wait loop compute wait loop");

  const WireGrid wires(hosts.size());
  EngineMesh mesh(
      hosts, {.network = [&](JobMemory& memory, const Mesh& of, int position, WaitPolicy policy) {
        auto tier = std::make_unique<NetworkTier>(
            memory, of, position, wires.of(of.device_at(position)), BoardWriter(), policy);
        return std::make_unique<OverlappedTier>(std::move(tier), BoardWriter());
      }});
  const testing::MeshPlan loaded = mesh.load(plan, true);
  std::vector<std::jthread> threads;
  for (int position = 0; position < hosts.size(); ++position) {
    threads.emplace_back([&, position] {
      host_of_thread = position;
      EXPECT_NO_THROW(mesh.engine(position).run(loaded.chips[static_cast<std::size_t>(position)], 1,
                                                loaded.buffers, {.step = 1}));
    });
  }
}

}  // namespace
}  // namespace weft::engine_network_test
