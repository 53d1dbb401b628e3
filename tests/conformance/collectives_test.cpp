/// One suite for all ways to be a chip: threads, processes, and one thread that polls all chips.

#include <weft/transport/communicator.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/tests/conformance/chip_team.hpp>
#include <weft/tests/conformance/collective_oracle.hpp>
#include <weft/transport/control_format.hpp>

namespace weft::testing {
namespace {

constexpr std::chrono::milliseconds kDeadline{60'000};
constexpr std::uint64_t kSource = kArenaTempOffset;
constexpr DType kDTypes[] = {DType::pred, DType::i32, DType::u32, DType::i64,
                             DType::bf16, DType::f32, DType::f64};
constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                     CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                     CollectiveKind::permute,        CollectiveKind::broadcast};

void place_operand(const CollectiveCase& which, int position, std::byte* arena) {
  const std::vector<std::byte>& bytes = which.operands[static_cast<std::size_t>(position)];
  if (!bytes.empty()) std::memcpy(arena + which.call.source, bytes.data(), bytes.size());
}

void check_result(const CollectiveCase& which, const Mesh& mesh, int position,
                  const std::byte* arena) {
  const std::vector<std::byte>& expected = which.results[static_cast<std::size_t>(position)];
  const std::byte* actual = arena + which.call.destination;
  if (expected.empty() || std::memcmp(actual, expected.data(), expected.size()) == 0) return;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    throw std::runtime_error(
        fmt::format("position {} of {}: {} of {} {} x {} [{}] over {:#x}, seed {}: byte {} of {} "
                    "is {:02x}, not "
                    "{:02x}",
                    position, mesh.to_string(), to_string(which.call.kind),
                    to_string(which.call.dtype), which.call.outer, which.call.count,
                    which.call.shape.to_string(), which.call.atoms.bits(), which.seed, i,
                    expected.size(), static_cast<int>(actual[i]), static_cast<int>(expected[i])));
  }
}

/// Runs the cases one after another, each chip as fast as it can.
void run_cases(const std::vector<CollectiveCase>& cases, const Mesh& mesh, JobMemory& memory,
               const Board& board, int position) {
  const int chip = mesh.device_at(position);
  Communicator communicator(memory, mesh, position, board.device(chip),
                            WaitPolicy::for_threads(mesh.size(), kDeadline));
  for (const CollectiveCase& which : cases) {
    place_operand(which, position, memory.arena(chip));
    communicator.run(which.call);
    check_result(which, mesh, position, memory.arena(chip));
  }
}

/// One thread that starts and polls the chips in a random order: chips are several collectives
/// apart.
struct PolledTeam {
  static std::string run(const Mesh& mesh, std::size_t arena_capacity,
                         const std::vector<CollectiveCase>& cases, std::uint64_t seed) {
    struct Chip {
      std::unique_ptr<Communicator> communicator;
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
      chips.push_back(
          {std::make_unique<Communicator>(memory, mesh, position, BoardWriter(), WaitPolicy{}),
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

/// A case of this kind whose source has about `count` elements where the kind has a choice.
CollectiveCase make_case(CollectiveKind kind, DType dtype, AtomList atoms, int n,
                         std::int64_t count, std::uint64_t seed) {
  CollectiveCase which;
  which.seed = seed;
  CollectiveCall& call = which.call;
  call.kind = kind;
  call.dtype = dtype;
  call.atoms = atoms;
  call.count = count;
  call.source = kSource;
  call.name = "case";
  call.reduce = dtype == DType::pred ? ReduceKind::max : ReduceKind::add;
  const auto pick = [seed](std::uint64_t bit, std::int64_t choices) {
    return static_cast<int>((seed >> bit) % static_cast<std::uint64_t>(choices));
  };
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter) {
    call.outer = 1 + pick(0, 3);
  }
  if (kind == CollectiveKind::all_to_all) {
    const std::int64_t dims[] = {2 * n, 3, n, count % 97};
    call.shape = Shape{dims[0], dims[1], dims[2], dims[3]};
    call.split_dim = 2 * pick(0, 2);
    call.concat_dim = pick(1, 4);
  }
  if (kind == CollectiveKind::broadcast) call.from = {pick(0, n)};
  if (kind == CollectiveKind::permute) {
    for (int i = 0; i < n; ++i) call.from.push_back((i + pick(0, n)) % n);
  }
  const CallBytes bytes = bytes_of(call, n);
  const bool in_place = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
  call.destination =
      in_place && pick(3, 2) != 0 ? kSource : (kSource + bytes.source + 127) / 64 * 64;
  return which;
}

/// Every way to name some of the axes, forwards and (where there are two or more) backwards.
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
    for (const CollectiveKind kind : kKinds) {
      for (const std::int64_t count : {0, 1, 7, 251}) add(kind, DType::f32, atoms, count);
    }
    for (const DType dtype : kDTypes) {
      add(CollectiveKind::all_reduce, dtype, atoms, 127);
      add(CollectiveKind::all_reduce, dtype, atoms, 61)->reduce = ReduceKind::max;
      add(CollectiveKind::all_reduce, dtype, atoms, 61)->reduce = ReduceKind::min;
      add(CollectiveKind::reduce_scatter, dtype, atoms, 127);
    }
    for (const DType dtype : {DType::pred, DType::bf16, DType::f64}) {  // of 1, 2 and 8 bytes
      for (const CollectiveKind kind : kKinds) {
        if (kind != CollectiveKind::all_reduce && kind != CollectiveKind::reduce_scatter) {
          add(kind, dtype, atoms, 127);
        }
      }
    }
    for (const DType dtype : {DType::bf16, DType::f32}) {  // on both sides of the threshold
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

/// Cases over random groups, parts of axes too.
std::vector<CollectiveCase> random_cases(const Mesh& mesh, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<CollectiveCase> cases;
  for (std::size_t i = 0; i < count; ++i) {
    AtomList atoms;
    for (int tries = 0; tries < mesh.num_atoms(); ++tries) {
      const auto atom = static_cast<Atom>(1 + random() % static_cast<unsigned>(mesh.num_atoms()));
      if (!atoms.contains(atom)) atoms.push_back(atom);
    }
    const auto n = static_cast<int>(mesh.count(atoms));
    const auto size =
        static_cast<std::int64_t>(random() % 16 == 0 ? random() % 6000 : random() % 200);
    if (random() % 8 == 0) {
      cases.push_back(make_case(CollectiveKind::barrier, DType::f32, atoms, n, 0, random()));
    } else {
      cases.push_back(make_case(kKinds[random() % std::size(kKinds)],
                                kDTypes[random() % std::size(kDTypes)], atoms, n, size, random()));
    }
    solve(cases.back(), mesh);
  }
  return cases;
}

std::size_t capacity_for(const std::vector<CollectiveCase>& cases, const Mesh& mesh) {
  std::size_t bytes = 2 * kArenaCapacityUnit;
  for (const CollectiveCase& which : cases) {
    const auto n = static_cast<int>(mesh.count(which.call.atoms));
    bytes = std::max(bytes, which.call.destination + bytes_of(which.call, n).destination);
  }
  return (bytes + kArenaCapacityUnit - 1) / kArenaCapacityUnit * kArenaCapacityUnit;
}

/// The device ids in reverse: a chip's number isn't its position.
Mesh reversed_mesh(std::vector<std::int64_t> shape) {
  std::int64_t size = 1;
  std::vector<std::string> names;
  for (const std::int64_t axis : shape) {
    size *= axis;
    names.push_back(fmt::format("axis{}", names.size()));
  }
  std::vector<int> ids;
  for (std::int64_t id = size; id-- > 0;) ids.push_back(static_cast<int>(id));
  return Mesh(std::move(shape), std::move(names), std::move(ids));
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
void expect_conforms(const Mesh& mesh, const std::vector<CollectiveCase>& cases) {
  const std::vector<std::string> failures = Team::run(
      mesh.size(), capacity_for(cases, mesh), [&](JobMemory& memory, const Board& board, int chip) {
        run_cases(cases, mesh, memory, board, mesh.position_of(chip));
      });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

template <typename Team>
class Collectives : public ::testing::Test {};

#ifdef __SANITIZE_THREAD__
using Teams = ::testing::Types<ThreadTeam>;  // it sees no races between processes
#else
using Teams = ::testing::Types<ThreadTeam, ProcessTeam>;
#endif
TYPED_TEST_SUITE(Collectives, Teams);

/// Every third case from 8 chips on, which take turns on few cores. The polled team runs them all.
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

#ifndef __SANITIZE_THREAD__
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
}  // namespace weft::testing
