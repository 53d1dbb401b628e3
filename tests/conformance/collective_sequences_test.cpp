/// Runs thousands of random sequences of collectives over random groups on 16 chips, however few
/// cores there are. Each chip makes a new communicator for each sequence.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "tests/conformance/collective_cases.hpp"

namespace weft::testing::collective_sequences_test {
namespace {

constexpr int kChipCount = 16;
constexpr std::size_t kSequenceLength = 4;
// Most cases are small enough that all chips transfer at once.
constexpr RandomSizes kSizes{.usual_max = 24, .rare_max = 1200};
constexpr std::size_t kSequencesPerJob = 100;

/// Returns the number of jobs for each team.
std::uint64_t job_count() {
  const char* count = std::getenv("WEFT_TEST_JOBS");
  return count != nullptr ? std::stoull(count) : 5;
}

/// Returns a mesh of all chips, in random order if `shuffled`.
Mesh random_mesh(bool shuffled, std::mt19937_64& random) {
  const std::vector<std::vector<std::int64_t>> shapes{{16},      {4, 4},    {2, 8},      {8, 2},
                                                      {2, 4, 2}, {2, 2, 4}, {2, 2, 2, 2}};
  const std::vector<std::int64_t>& shape = shapes[random() % shapes.size()];
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) names.push_back(fmt::format("a{}", axis));
  std::vector<int> ids;
  for (int id = 0; id < kChipCount; ++id) ids.push_back(id);
  if (shuffled) std::shuffle(ids.begin(), ids.end(), random);
  return Mesh(shape, names, ids);
}

/// Returns the usual waiting policy of a job's chips, or one that sleeps as early as possible.
WaitPolicy random_policy(std::uint64_t bits) {
  if (bits % 4 != 0) return WaitPolicy::for_threads(kChipCount, kDeadline);
  return {.spins = 0, .yield_for = std::chrono::microseconds(0), .deadline = kDeadline};
}

/// Runs one job, in which every chip runs the sequences one after another as fast as it can.
template <typename Team>
void expect_job_conforms(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const bool one_host = !Team::kHasHosts;
  const Mesh mesh = Team::mesh_of(random_mesh(one_host, random));
  std::vector<std::vector<CollectiveCase>> sequences;
  std::size_t capacity = 0;
  for (std::size_t i = 0; i < kSequencesPerJob; ++i) {
    sequences.push_back(random_cases(mesh, kSequenceLength, random(), kSizes));
    capacity = std::max(capacity, capacity_for(sequences.back(), mesh));
  }
  const std::vector<std::string> failures = Team::run(mesh, capacity, [&](const TeamChip& chip) {
    std::mt19937_64 chips_random(seed + static_cast<std::uint64_t>(chip.id));
    for (const std::vector<CollectiveCase>& sequence : sequences) {
      run_cases(sequence, mesh, chip, random_policy(chips_random()));
    }
  });
  for (const std::string& failure : failures) {
    EXPECT_EQ(failure, "") << "WEFT_TEST_SEED=" << seed << " runs this job only";
  }
}

/// Sends broadcasts of a few bytes one after another, now and then with another root or a sync,
/// between chips that wait in different ways.
template <typename Team>
void expect_messages_conform(const Mesh& shape, std::uint64_t seed) {
  constexpr std::size_t kMessages = 1000;
  std::mt19937_64 random(seed);
  const Mesh mesh = Team::mesh_of(shape);
  const AtomList atoms = mesh.axis_atoms(mesh.num_axes() - 1);
  const auto n = static_cast<int>(mesh.count(atoms));
  std::vector<CollectiveCase> cases;
  int root = 0;
  while (cases.size() < kMessages) {
    const bool is_message = random() % 16 != 0;
    const auto count = static_cast<std::int64_t>(1 + random() % 4);
    cases.push_back(
        make_row_case(is_message ? CollectiveKind::broadcast : CollectiveKind::all_reduce,
                      DType::f32, atoms, n, count, random()));
    if (random() % 32 == 0) root = static_cast<int>(random() % static_cast<std::uint64_t>(n));
    if (is_message) cases.back().call.from = {root};
    solve(cases.back(), mesh);
  }
  const std::vector<std::string> failures =
      Team::run(mesh, capacity_for(cases, mesh), [&](const TeamChip& chip) {
        std::mt19937_64 chips_random(seed + static_cast<std::uint64_t>(chip.id));
        run_cases(cases, mesh, chip, random_policy(chips_random()));
      });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "") << "seed " << seed;
}

template <typename Team>
class CollectiveSequences : public TeamTest<Team> {};
TYPED_TEST_SUITE(CollectiveSequences, Teams);

TYPED_TEST(CollectiveSequences, OfSmallBroadcastsEndAsTheOracleSays) {
  for (std::uint64_t seed = 0; seed < 3 && !this->HasFailure(); ++seed) {
    expect_messages_conform<TypeParam>(reversed_mesh({2, 2}), seed);
    expect_messages_conform<TypeParam>(reversed_mesh({2, 5}), seed);
  }
}

TYPED_TEST(CollectiveSequences, EndAsTheOracleSays) {
  if (const char* seed = std::getenv("WEFT_TEST_SEED")) {
    return expect_job_conforms<TypeParam>(std::stoull(seed));
  }
  // The teams run different sequences.
  const std::uint64_t first = std::is_same_v<TypeParam, ThreadTeam>    ? 0
                              : std::is_same_v<TypeParam, ProcessTeam> ? 1'000'000
                                                                       : 2'000'000;
  for (std::uint64_t job = 0; job < job_count() && !this->HasFailure(); ++job) {
    expect_job_conforms<TypeParam>(first + job);
  }
}

}  // namespace
}  // namespace weft::testing::collective_sequences_test
