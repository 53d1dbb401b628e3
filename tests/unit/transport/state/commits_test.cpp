#include "transport/state/commits.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <thread>
#include <vector>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/job/control_format.hpp"

namespace weft::commits_test {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;

constexpr WaitPolicy kSleeps{.spins = 0, .yield_for = {}};
constexpr WaitPolicy kImpatient{.spins = 0, .yield_for = {}, .deadline = milliseconds(1)};

/// Chips 2, 0 and 1 have the positions 0, 1 and 2.
class CommitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int position = 0; position < mesh.size(); ++position) {
      const BoardWriter row = board.device(mesh.device_at(position));
      chips.push_back(std::make_unique<Commits>(memory, mesh, position, row, kSleeps));
    }
  }
  void commit_all(std::uint64_t step) {
    for (const auto& chip : chips) chip->commit(step);
  }
  std::uint64_t committed(int chip) const { return memory.commit_line(chip).step; }
  void await_sleeper(int chip) const {
    while (memory.commit_line(chip).sleepers == 0) sched_yield();
  }

  const Mesh mesh{{3}, {"data"}, {2, 0, 1}};
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 3, .arena_capacity = std::size_t{1} << 20});
  Board board = Board::anonymous({.job = "t", .num_chips = 3});
  std::vector<std::unique_ptr<Commits>> chips;  ///< indexed by position
};

TEST_F(CommitsTest, OnlyGrow) {
  chips[0]->commit(3);
  chips[0]->commit(2);
  EXPECT_EQ(committed(2), 3U);
  EXPECT_EQ(committed(0), 0U);
}

TEST_F(CommitsTest, AStepIsReachedWhenTheLastChipHasCommittedIt) {
  chips[0]->commit(1);
  chips[1]->commit(1);
  EXPECT_FALSE(chips[0]->reached(1));
  EXPECT_FALSE(chips[1]->reached(1));
  chips[2]->commit(2);
  for (const auto& chip : chips) EXPECT_TRUE(chip->reached(1));
  for (const auto& chip : chips) chip->wait(1);
}

TEST_F(CommitsTest, TheNextStepIsAnotherQuestion) {
  commit_all(1);
  EXPECT_TRUE(chips[0]->reached(1));
  EXPECT_FALSE(chips[0]->reached(2));
  commit_all(2);
  EXPECT_TRUE(chips[0]->reached(2));
}

TEST_F(CommitsTest, AWaitThatSleepsEndsWithTheCommit) {
  std::jthread waiter([this] { chips[0]->wait(1); });
  await_sleeper(0);
  chips[1]->commit(1);
  await_sleeper(1);
  EXPECT_EQ(board.read(2 + 2).waiting_for, 1);
  chips[2]->commit(1);
  waiter.join();
  EXPECT_EQ(board.read(2 + 2).waiting_for, -1);
  EXPECT_EQ(memory.commit_line(0).sleepers, 0U);
  EXPECT_EQ(memory.commit_line(1).sleepers, 0U);
}

/// A real wait ends by itself after a short time. This test sleeps for an hour instead, so only a
/// commit can wake it.
TEST_F(CommitsTest, WakesThoseThatSleepOnItAndNobodyElse) {
  CommitLine& line = memory.commit_line(2);
  chips[0]->commit(1);
  EXPECT_EQ(line.woken, 0U) << "nobody sleeps";
  line.sleepers = 1;
  std::jthread sleeper([&] {
    while (line.woken == 0) sleep_on(line.woken, 0, std::chrono::hours(1));
  });
  chips[0]->commit(2);
  EXPECT_EQ(line.woken, 1U);
}

TEST_F(CommitsTest, AnAbortEndsTheWaitWithItsReason) {
  chips[1]->commit(1);
  std::jthread trainer([this] {
    await_sleeper(1);
    memory.abort("worker 1 was killed by signal 9");
  });
  expect_error(Errc::peer_lost,
               {"worker 1 was killed by signal 9; chip 2 waited for chip 1 to begin step 2"},
               [&] { chips[0]->wait(1); });
  expect_error(Errc::peer_lost, {"signal 9"}, [&] { chips[0]->reached(1); });
}

TEST_F(CommitsTest, WhatIsReachedStaysSoAfterAnAbort) {
  commit_all(1);
  memory.abort("too late");
  EXPECT_TRUE(chips[0]->reached(1));
  chips[0]->wait(1);
}

TEST_F(CommitsTest, ATimeoutNamesTheChipThatIsMissing) {
  Commits impatient(memory, mesh, 0, board.device(2), kImpatient);
  expect_error(Errc::timeout, {"chip 2 waited", "for chip 0 to begin step 8"},
               [&] { impatient.wait(7); });
  chips[1]->commit(7);
  expect_error(Errc::timeout, {"chip 2 waited", "for chip 1 to begin step 8"},
               [&] { impatient.wait(7); });
  EXPECT_EQ(board.read(2 + 2).waiting_for, 1);
}

TEST_F(CommitsTest, TheCommonStepIsTheLeast) {
  EXPECT_EQ(common_step(memory), 0U);
  commit_all(4);
  chips[2]->commit(6);
  EXPECT_EQ(common_step(memory), 4U);
  chips[0]->commit(5);
  chips[1]->commit(9);
  EXPECT_EQ(common_step(memory), 5U);
}

/// A chip of a host with two chips; the mesh has two hosts.
class CommitsOfHosts : public ::testing::Test {
 protected:
  void tell(int chip, std::uint64_t step) const { memory.commit_line(chip).far = step; }

  const Mesh mesh = HybridMesh{{1, 2}, {2, 1}, {"data", "model"}}.mesh();
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 2, .arena_capacity = std::size_t{1} << 20});
  Commits first{memory, mesh, 0, BoardWriter(), kImpatient};
  Commits second{memory, mesh, 1, BoardWriter(), kSleeps};
};

TEST_F(CommitsOfHosts, AStepIsReachedWhenAllTwinsHaveToldIt) {
  first.commit(1);
  second.commit(1);
  EXPECT_FALSE(first.reached(1));
  tell(0, 1);
  EXPECT_FALSE(first.reached(1));
  EXPECT_FALSE(second.reached(1));
  tell(1, 1);
  EXPECT_TRUE(first.reached(1));
  EXPECT_TRUE(second.reached(1));
  EXPECT_FALSE(first.reached(2));
}

TEST_F(CommitsOfHosts, AnErrorNamesTheChipWhoseTwinsHaventToldTheStep) {
  first.commit(3);
  second.commit(3);
  tell(0, 3);
  tell(1, 2);
  expect_error(Errc::timeout, {"chip 0 waited", "for chip 1, or for the chips", "to begin step 4"},
               [&] { first.wait(3); });
}

/// A new generation discards the later steps that chips of other hosts reported before.
TEST_F(CommitsOfHosts, AGenerationBeginsAtAStepThatAllHostsHave) {
  tell(1, 7);
  memory.begin_generation(5);
  EXPECT_EQ(memory.commit_line(1).far, 5U);
  EXPECT_EQ(common_step(memory), 5U);
  EXPECT_EQ(far_step(memory), 5U);
}

TEST_F(CommitsOfHosts, KnowTheStepThatAllHostsHave) {
  first.commit(4);
  second.commit(4);
  tell(0, 3);
  tell(1, 4);
  EXPECT_EQ(common_step(memory), 4U);
  EXPECT_EQ(far_step(memory), 3U);
  tell(0, 5);
  EXPECT_EQ(far_step(memory), 4U) << "this host's chips have no later version";
}

}  // namespace
}  // namespace weft::commits_test
