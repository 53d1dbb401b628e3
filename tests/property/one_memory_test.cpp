// Tests that plans for several hosts give the same bits on chips that share one memory as on hosts
// that are connected by wires, and the same bits in every run, whether or not chips compute during
// collectives between hosts. WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/overlap.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_program.hpp"
#include "tests/support/random_training.hpp"
#include "tests/support/target.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/network/network_tier.hpp"
#include "transport/network/overlapped_tier.hpp"

namespace weft::one_memory_test {
namespace {

using testing::EngineMesh;
using testing::Random;
using testing::WireGrid;
using Schedule = EngineMesh::Schedule;

/// Returns a mesh of 2 or 3 hosts with 1 to 4 chips each. The hosts are along any of the axes.
Mesh any_hosts(Random& random) {
  const std::int64_t hosts = random.one_in(3) ? 3 : 2;
  const auto chips = static_cast<std::int64_t>(1 + random.below(4));
  switch (random.below(4)) {
    case 0: return HybridMesh{{chips, 1}, {1, hosts}, {"a", "b"}}.mesh();
    case 1: return HybridMesh{{1, chips}, {hosts, 1}, {"a", "b"}}.mesh();
    case 2:
      if (hosts == 2) return HybridMesh{{2, 2}, {1, 2}, {"a", "b"}}.mesh();
      [[fallthrough]];
    default: return HybridMesh{{chips}, {hosts}, {"a"}}.mesh();
  }
}

/// Returns inputs whose sums depend on the order in which they are added. Integers stay small.
std::vector<Elements> any_inputs(const Program& program, Random& random) {
  std::vector<Elements> inputs = testing::small_integers(program, random);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = program.type(program.inputs[i].value).dtype;
    if (!is_floating(dtype)) continue;
    for (double& element : inputs[i]) {
      element += static_cast<double>(random.below(1 << 20)) / (1 << 20);
      element = static_cast<double>(static_cast<float>(element));
    }
  }
  return inputs;
}

/// The outputs of five runs of a plan: two in one memory, and three on hosts with wires between
/// them, with a thread per chip, with one thread, and with chips that wait for each collective at
/// its start.
struct Runs {
  EngineMesh::Outputs in_one_memory;
  EngineMesh::Outputs again;
  EngineMesh::Outputs on_hosts;
  EngineMesh::Outputs on_hosts_by_turns;
  EngineMesh::Outputs waiting_at_starts;
};

EngineMesh hosts_of(const Mesh& mesh, const WireGrid& wires, bool overlaps) {
  return EngineMesh(
      mesh, {.network = [&wires, overlaps](JobMemory& memory, const Mesh& of, int position,
                                           WaitPolicy policy) -> std::unique_ptr<CollectiveTier> {
        auto tier = std::make_unique<NetworkTier>(
            memory, of, position, wires.of(of.device_at(position)), Recorder(), policy);
        if (!overlaps) return tier;
        return std::make_unique<OverlappedTier>(std::move(tier), Recorder());
      }});
}

Runs run(const Plan& plan, const Mesh& mesh, std::span<const Elements> inputs) {
  Runs runs;
  EngineMesh one(mesh);
  const auto loaded = one.load(plan);
  runs.in_one_memory = one.run(loaded, inputs, Schedule::thread_per_chip);
  runs.again = one.run(loaded, inputs, Schedule::one_thread);
  const WireGrid wires(mesh.size());
  {
    EngineMesh hosts = hosts_of(mesh, wires, true);
    const auto on_hosts = hosts.load(plan);
    runs.on_hosts = hosts.run(on_hosts, inputs, Schedule::thread_per_chip);
    runs.on_hosts_by_turns = hosts.run(on_hosts, inputs, Schedule::one_thread);
  }
  runs.waiting_at_starts =
      hosts_of(mesh, wires, false).run(plan, inputs, Schedule::thread_per_chip);
  return runs;
}

TEST(OneMemory, GivesTheInterpretersBitsAndThoseOfHosts) {
  std::size_t flight_count = 0;
  const std::vector<std::uint64_t> seeds = testing::seeds(400);
  for (const std::uint64_t seed : seeds) {
    Random random(seed);
    const Mesh mesh = any_hosts(random);
    const Program program = seed % 4 == 0   ? testing::random_training(mesh, random)
                            : seed % 4 == 1 ? testing::random_program(mesh, random)
                            : seed % 4 == 2 ? testing::random_program_of_narrow(mesh, random)
                                            : testing::random_program_of_shards(mesh, random);
    SCOPED_TRACE(fmt::format("seed {}, mesh {}{}", seed, mesh.to_string(), hosts_text(mesh)));
    const std::int64_t shared_bytes_min = random.one_in(2) ? 0 : 65536;
    const Plan plan = compile(
        program, mesh,
        testing::cpu_target_with({.shared_bytes_min = shared_bytes_min, .overlap_work_min = 0}));
    flight_count += flights(plan.steps).size();
    const std::vector<Elements> inputs_of_seed = any_inputs(program, random);
    const Runs runs = run(plan, mesh, inputs_of_seed);
    ASSERT_EQ(runs.again, runs.in_one_memory) << to_text(program, mesh);
    ASSERT_EQ(runs.on_hosts, runs.in_one_memory) << to_text(program, mesh);
    ASSERT_EQ(runs.on_hosts_by_turns, runs.in_one_memory) << to_text(program, mesh);
    ASSERT_EQ(runs.waiting_at_starts, runs.in_one_memory) << to_text(program, mesh);
    const Plan waiting = compile(program, mesh,
                                 testing::cpu_target_with({.shared_bytes_min = shared_bytes_min,
                                                           .overlap_work_min = Target::kNever}));
    ASSERT_TRUE(flights(waiting.steps).empty());
    ASSERT_EQ(EngineMesh(mesh).run(waiting, inputs_of_seed, Schedule::thread_per_chip),
              runs.in_one_memory)
        << to_text(program, mesh);
    if (seed % 4 == 0) continue;  // training isn't exact on integers
    // Sums of small integers are exact in f64, also in large programs.
    const std::vector<Elements> integers = testing::small_integers(program, random);
    const std::vector<Elements> expected = interpret(program, mesh, integers);
    const auto simulated =
        simulate(plan.program, mesh, plan.input_types, plan.output_types, integers);
    ASSERT_EQ(simulated, expected) << to_text(program, mesh);
  }
  EXPECT_GE(flight_count, seeds.size() / 8);
}

/// Compiling verifies that no memory is overwritten while a collective uses it. No case needs a
/// run, so there are many more cases.
TEST(OneMemory, CompilesTrainingWhoseCollectivesGoOn) {
  for (const std::uint64_t seed : testing::seeds(2000)) {
    Random random(seed);
    const Mesh mesh = any_hosts(random);
    const Program program = testing::random_training(mesh, random);
    SCOPED_TRACE(fmt::format("seed {}, mesh {}{}", seed, mesh.to_string(), hosts_text(mesh)));
    ASSERT_NO_THROW(compile(program, mesh, testing::cpu_target_with({.overlap_work_min = 0})));
  }
}

/// Sums must have this order: first the rows of the chips of each host, in f32, and then the hosts.
TEST(OneMemory, AddsTheChipsOfAHostAndThenTheHosts) {
  for (const auto& [chips, hosts] : {std::pair<std::int64_t, std::int64_t>{4, 2}, {3, 3}, {2, 4}}) {
    const Mesh mesh = HybridMesh{{chips}, {hosts}, {"data"}}.mesh();
    for (const std::int64_t size : {5, 4099, 8192}) {
      Program program;
      Builder b(program);
      const Shape shape{mesh.size(), size};
      const ValueId x = program.add_input({DType::f32, shape}, InputKind::data, "x",
                                          Sharding::from_spec(mesh, {{"data"}, {}}, shape, "x"));
      program.add_output(b.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}), "sum",
                         Sharding::closed());
      Random random(static_cast<std::uint64_t>(size));
      const std::vector<Elements> inputs = any_inputs(program, random);
      const Plan plan = compile(program, mesh, testing::cpu_target_with({}));
      const Runs runs = run(plan, mesh, inputs);
      EXPECT_EQ(runs.on_hosts, runs.in_one_memory);
      const Elements found = testing::join(plan, mesh, runs.in_one_memory).front();
      const auto at = [&](std::int64_t chip, std::int64_t i) {
        return static_cast<float>(inputs[0][static_cast<std::size_t>(chip * size + i)]);
      };
      for (std::int64_t i = 0; i < size; ++i) {
        float sum = 0;
        for (std::int64_t host = 0; host < hosts; ++host) {
          float of_host = at(host * chips, i);
          for (std::int64_t chip = 1; chip < chips; ++chip) of_host += at(host * chips + chip, i);
          sum = host == 0 ? of_host : sum + of_host;
        }
        ASSERT_EQ(found[static_cast<std::size_t>(i)], static_cast<double>(sum)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace weft::one_memory_test
