#include "inspect/why/hang.hpp"

#include <gtest/gtest.h>

#include "tests/unit/inspect/made_job.hpp"

namespace weft::hang_test {
namespace {

using testing::MadeJob;

TEST(Hang, PatienceIsAtLeastFiveSeconds) {
  MadeJob job(2, 1);
  EXPECT_EQ(patience_s(job.snapshot), 5);
}

TEST(Hang, PatienceIsLongerBeforeTheFirstStepAndWhereALoopCompilesLoadsOrSaves) {
  MadeJob job(2, 1);
  job.worker(0).state = ActorState::compiling;
  EXPECT_EQ(patience_s(job.snapshot), 30);
  job.worker(0).step = job.worker(1).step = 0;
  EXPECT_EQ(patience_s(job.snapshot), 60);
}

TEST(Hang, PatienceFollowsTheJobsOwnSteps) {
  MadeJob job(2, 1);
  EventRing ring{.kind = RingKind::chip, .worker = 0, .chip = 0};
  for (unsigned i = 0; i < 10; ++i) {
    ring.events.push_back({.at_ns = i * 2 * MadeJob::kSecond, .number = i});
  }
  job.snapshot.rings.push_back(ring);
  EXPECT_EQ(patience_s(job.snapshot), 20);
}

TEST(Hang, AJobInWhichNothingHasMovedForLongerHangs) {
  MadeJob job(2, 1);
  EXPECT_EQ(idle_s(job.snapshot), 41);
  EXPECT_TRUE(is_hung(job.snapshot));
  job.chip(1).since_ns = job.snapshot.at_ns - MadeJob::kSecond;
  EXPECT_FALSE(is_hung(job.snapshot));
}

/// A chip that waits for commits updates its timestamp, but that isn't progress.
TEST(Hang, AChipThatWaitsForCommitsDoesNotMove) {
  MadeJob job(2, 1);
  job.chip(1).updated_ns = job.snapshot.at_ns;
  job.chip(1).waiting_for = 0;
  EXPECT_TRUE(is_hung(job.snapshot));
}

TEST(Hang, WhatIsHeldInADebuggerOrOverIsNotHung) {
  MadeJob job(2, 1);
  job.process(1).tracer = 812;
  job.process(1).state = 't';
  EXPECT_FALSE(is_hung(job.snapshot));
  job.process(1).state = 'S';
  EXPECT_TRUE(is_hung(job.snapshot));  // the debugger only watches
  job.snapshot.status = JobStatus::succeeded;
  EXPECT_FALSE(is_hung(job.snapshot));
}

TEST(Hang, WhoCompilesAndRunsIsNotHung) {
  MadeJob job(2, 1);
  job.worker(1).state = ActorState::compiling;
  EXPECT_TRUE(is_hung(job.snapshot));
  job.process(1).threads[0].state = 'R';
  EXPECT_FALSE(is_hung(job.snapshot));
}

TEST(Hang, TurnsOfALoopThatGiveItsChipsNothingCountForSomeTime) {
  MadeJob job(2, 1);
  job.wait_for(1, "a");
  job.worker(1).moved_ns = job.worker(1).since_ns = job.snapshot.at_ns;
  EXPECT_FALSE(patience_s(job.snapshot) * 6 > 41);
  EXPECT_TRUE(is_hung(job.snapshot));
  for (int c = 0; c < 2; ++c) job.chip(c).since_ns = job.snapshot.at_ns - 20 * MadeJob::kSecond;
  EXPECT_FALSE(is_hung(job.snapshot));
}

TEST(Hang, AStepACollectiveOrACommitIsAMoveAndAStampIsNot) {
  const MadeJob before(2, 1);
  MadeJob now(2, 1);
  now.chip(0).updated_ns += 5;
  now.chip(0).since_ns += 5;
  now.chip(0).waiting_for = 1;
  EXPECT_FALSE(has_moved(before.snapshot, now.snapshot));
  now.chip(0).step++;
  EXPECT_TRUE(has_moved(before.snapshot, now.snapshot));
  now = MadeJob(2, 1);
  now.snapshot.control->chips[0].committed++;
  EXPECT_TRUE(has_moved(before.snapshot, now.snapshot));
  now = MadeJob(2, 1);
  now.snapshot.control->chips[0].announced[1]++;
  EXPECT_TRUE(has_moved(before.snapshot, now.snapshot));
}

}  // namespace
}  // namespace weft::hang_test
