/// Runs one suite of collectives on chips that are threads, chips that are processes, and chips
/// that a single thread polls.

#include "transport/collectives/communicator.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "tests/conformance/collective_cases.hpp"
#include "transport/job/control_format.hpp"

namespace weft::testing::collectives_test {
namespace {

/// One thread starts and polls the chips in a random order, so that chips may be several
/// collectives apart.
struct PolledTeam {
  static std::string run(const Mesh& mesh, std::size_t arena_capacity,
                         const std::vector<CollectiveCase>& cases, std::uint64_t seed) {
    struct Chip {
      std::unique_ptr<PreparingCommunicator> communicator;
      std::byte* arena;
      std::size_t next = 0;
      bool started = false;
    };
    JobMemory memory = JobMemory::anonymous(
        {.job = unique_job(), .num_chips = mesh.size(), .arena_capacity = arena_capacity});
    std::vector<Chip> chips;
    std::vector<int> running;
    for (int position = 0; position < mesh.size(); ++position) {
      const int chip = mesh.device_at(position);
      memory.reserve(chip, 0, arena_capacity);
      chips.push_back({std::make_unique<PreparingCommunicator>(memory, mesh, position,
                                                               BoardWriter(), WaitPolicy{}),
                       memory.arena(chip)});
      running.push_back(position);
    }
    std::mt19937_64 random(seed);
    try {
      while (!running.empty()) {
        const std::size_t pick = random() % running.size();
        Chip& chip = chips[static_cast<std::size_t>(running[pick])];
        const CollectiveCase& which = cases[chip.next];
        if (!chip.started) {
          place_operand(which, running[pick], chip.arena);
          chip.communicator->start(which.call);
          chip.started = true;
        } else if (chip.communicator->poll()) {
          check_result(which, mesh, running[pick], chip.arena);
          chip.started = false;
          if (++chip.next == cases.size()) running.erase(running.begin() + static_cast<long>(pick));
        }
      }
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }
};

/// Returns every choice of axes, in forward order and, with two or more, in reverse order too.
std::vector<AtomList> axis_lists(const Mesh& mesh) {
  std::vector<AtomList> lists;
  for (unsigned subset = 0; subset < 1U << mesh.num_axes(); ++subset) {
    AtomList forwards;
    AtomList backwards;
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      if ((subset >> axis & 1U) != 0) forwards.append(mesh.axis_atoms(axis));
      const int last = mesh.num_axes() - 1 - axis;
      if ((subset >> last & 1U) != 0) backwards.append(mesh.axis_atoms(last));
    }
    lists.push_back(forwards);
    if (forwards != backwards) lists.push_back(backwards);
  }
  return lists;
}

std::vector<CollectiveCase> all_cases(const Mesh& mesh) {
  std::vector<CollectiveCase> cases;
  const auto add = [&](CollectiveKind kind, DType dtype, AtomList atoms, std::int64_t count) {
    const auto n = static_cast<int>(mesh.count(atoms));
    cases.push_back(make_case(kind, dtype, atoms, n, count, cases.size()));
    return &cases.back().call;
  };
  for (const AtomList atoms : axis_lists(mesh)) {
    add(CollectiveKind::barrier, DType::f32, atoms, 0);
    for (const CollectiveKind kind : kDataKinds) {
      for (const std::int64_t count : {0, 1, 7, 251}) add(kind, DType::f32, atoms, count);
    }
    for (const DType dtype : kDTypes) {
      add(CollectiveKind::all_reduce, dtype, atoms, 127);
      add(CollectiveKind::all_reduce, dtype, atoms, 61)->reduce = ReduceKind::max;
      add(CollectiveKind::all_reduce, dtype, atoms, 61)->reduce = ReduceKind::min;
      add(CollectiveKind::reduce_scatter, dtype, atoms, 127);
    }
    // Dtypes of 1, 2 and 8 bytes.
    for (const DType dtype : {DType::pred, DType::bf16, DType::f64}) {
      for (const CollectiveKind kind : kDataKinds) {
        if (kind != CollectiveKind::all_reduce && kind != CollectiveKind::reduce_scatter) {
          add(kind, dtype, atoms, 127);
        }
      }
    }
    for (const DType dtype : {DType::bf16, DType::f32}) {  // sizes on both sides of the threshold
      const auto threshold = static_cast<std::int64_t>(kMailboxBytes) / byte_size(dtype);
      add(CollectiveKind::all_reduce, dtype, atoms, threshold);
      add(CollectiveKind::all_reduce, dtype, atoms, threshold + 1);
    }
  }
  const AtomList all = axis_lists(mesh).back();
  add(CollectiveKind::all_reduce, DType::f32, all, 100'000);
  add(CollectiveKind::reduce_scatter, DType::bf16, all, 100'000 / mesh.size());
  add(CollectiveKind::all_gather, DType::f64, all, 10'007);
  for (CollectiveCase& which : cases) solve(which, mesh);
  return cases;
}

std::vector<Mesh> meshes() {
  std::vector<Mesh> meshes;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {2}, {3}, {2, 2}, {5}, {2, 3}, {4, 2}, {2, 2, 2}, {4, 4}}) {
    meshes.push_back(reversed_mesh(shape));
  }
  return meshes;
}

template <typename Team>
class Collectives : public TeamTest<Team> {};

TYPED_TEST_SUITE(Collectives, Teams);

/// Returns every third case if 8 or more chips have to share few cores. The polled team runs all
/// cases.
std::vector<CollectiveCase> affordable_cases(const Mesh& mesh) {
  std::vector<CollectiveCase> cases = all_cases(mesh);
  if (mesh.size() < 8) return cases;
  std::vector<CollectiveCase> kept;
  for (std::size_t i = 0; i < cases.size(); i += 3) kept.push_back(std::move(cases[i]));
  return kept;
}

TYPED_TEST(Collectives, AgreeWithTheOracleOnEveryMesh) {
  for (const Mesh& mesh : meshes()) expect_conforms<TypeParam>(mesh, affordable_cases(mesh));
}

TYPED_TEST(Collectives, AgreeInAnyOrderOverAnyGroups) {
  constexpr std::uint64_t kSeed = 20240607;
  for (const Mesh& mesh : {reversed_mesh({4, 2}), reversed_mesh({2, 4, 2})}) {
    expect_conforms<TypeParam>(mesh, random_cases(mesh, 300, kSeed));
  }
}

#ifndef WEFT_THREAD_SANITIZER
TEST(PolledCollectives, AgreeWithTheOracleOnEveryMesh) {
  for (const Mesh& mesh : meshes()) {
    const std::vector<CollectiveCase> cases = all_cases(mesh);
    EXPECT_EQ(PolledTeam::run(mesh, capacity_for(cases, mesh), cases, 1), "");
  }
}

TEST(PolledCollectives, AgreeInAnyInterleaving) {
  const Mesh mesh = reversed_mesh({2, 2, 2});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<CollectiveCase> cases = random_cases(mesh, 60, seed);
    EXPECT_EQ(PolledTeam::run(mesh, capacity_for(cases, mesh), cases, seed), "") << "seed " << seed;
  }
}
#endif

}  // namespace
}  // namespace weft::testing::collectives_test
