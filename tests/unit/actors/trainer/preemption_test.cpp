/// JobState where the job is to end soon, and the Permits of its workers.

#include <gtest/gtest.h>

#include <thread>

#include <weft/actors/trainer/job_state.hpp>
#include <weft/actors/worker/permits.hpp>
#include <weft/tests/support/expect_error.hpp>

namespace weft {
namespace {

using Kind = Action::Kind;
using testing::expect_error;

constexpr const char* kWhy = "the trainer (pid 7) got SIGTERM";

JobState gathered(int workers, std::uint64_t committed = 0) {
  JobState job(workers, {.max_failures = -1}, 10);
  for (int w = 0; w < workers; ++w) job.started(w, 100 + w);
  for (int w = 0; w < workers; ++w) job.joined(w, 100 + w, committed);
  return job;
}

/// The kind of the only action, and its number.
void expect_only(const Actions& actions, Kind kind, std::uint64_t number = 0) {
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, kind);
  EXPECT_EQ(actions[0].number, number);
}

LoopEnded ended(int worker, std::uint64_t step, bool preempted) {
  return {.worker = worker, .step = step, .runs = step, .preempted = preempted};
}

TEST(Preemption, EndsAllLoopsAtTheFirstStepThatNobodyHasBegun) {
  JobState job = gathered(3);
  expect_only(job.preempt(kWhy), Kind::pause);
  EXPECT_TRUE(job.preempt("again").empty());
  EXPECT_TRUE(job.lease_wanted(9).empty());
  EXPECT_TRUE(job.paused(0, 1, 5).empty());
  EXPECT_TRUE(job.paused(2, 1, 6).empty());
  expect_only(job.paused(1, 1, 4), Kind::end_at, 6);
  EXPECT_EQ(job.loop_ended(ended(0, 6, true)).size(), 1U);
  EXPECT_EQ(job.loop_ended(ended(1, 6, true)).size(), 1U);
  EXPECT_EQ(job.loop_ended(ended(2, 6, true)).back().kind, Kind::stop);
  ASSERT_TRUE(job.failure());
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message, "the trainer (pid 7) got SIGTERM; all loops ended at step 6");
}

TEST(Preemption, ALoopThatWasDoneBeforeItKnewHasSucceeded) {
  JobState job = gathered(1);
  job.preempt(kWhy);
  EXPECT_EQ(job.loop_ended(ended(0, 6, false)).back().kind, Kind::stop);
  EXPECT_EQ(job.phase(), JobPhase::succeeded);
  EXPECT_FALSE(job.failure());
}

/// Its process may be gone by then.
TEST(Preemption, DoesNotWaitForALoopThatIsDone) {
  JobState first = gathered(2);
  first.loop_ended(ended(1, 6, false));
  first.process_ended({.worker = 1, .signal = 9}, {});
  first.preempt(kWhy);
  expect_only(first.paused(0, 1, 5), Kind::end_at, 6);

  JobState later = gathered(2);
  later.preempt(kWhy);
  EXPECT_TRUE(later.paused(0, 1, 5).empty());
  const Actions actions = later.loop_ended(ended(1, 6, false));
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(actions[1].kind, Kind::end_at);
  EXPECT_EQ(actions[1].number, 6U);
}

TEST(Preemption, EndsAJobThatHasNothingYet) {
  JobState job(2);
  expect_only(job.preempt(kWhy), Kind::cancel);
  EXPECT_EQ(job.failure()->message, kWhy);
}

TEST(Preemption, IsAskedForAgainWhenAWorkerHasBeenLost) {
  JobState job = gathered(2);
  job.preempt(kWhy);
  job.paused(0, 1, 5);
  job.process_ended({.worker = 1, .signal = 9}, {}, 4);
  EXPECT_TRUE(job.paused(1, 1, 5).empty());
  job.unwound(0, 2, 4);
  job.started(1, 111);
  const Actions actions = job.joined(1, 111, 4);
  ASSERT_EQ(actions.size(), 3U);
  EXPECT_EQ(actions[0].kind, Kind::start);
  EXPECT_EQ(actions[2].kind, Kind::pause);
  EXPECT_TRUE(job.paused(1, 2, 5).empty());
  expect_only(job.paused(0, 2, 5), Kind::end_at, 5);
}

TEST(Preemption, OfAJobThatGathersAgainWaitsForItsWorkers) {
  JobState job = gathered(2);
  job.process_ended({.worker = 1, .signal = 9}, {}, 4);
  EXPECT_TRUE(job.preempt(kWhy).empty());
  job.unwound(0, 2, 4);
  EXPECT_EQ(job.joined(1, 111, 4).back().kind, Kind::pause);
}

TEST(Preemption, IsNotWaitedForBeyondItsGrace) {
  JobState job = gathered(2);
  job.preempt(kWhy);
  expect_only(job.grace_over(25), Kind::cancel);
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; its loops had not ended in time for run.grace_s = "
            "25: save a checkpoint and return where ctx.reached_preemption() is true");
  EXPECT_TRUE(job.grace_over(25).empty());
}

TEST(Preemption, LetsALoopFinishItsStepAndComeToTheLast) {
  Permits permits(std::chrono::hours(1));
  permits.start({.step = 4});
  permits.grant(100);
  permits.begin_step(4);
  EXPECT_EQ(permits.pause(), 5U);
  permits.begin_step(4);  // it has begun
  EXPECT_FALSE(permits.reached_preemption());
  std::jthread trainer([&] { permits.end_at(6); });
  permits.begin_step(5);
  EXPECT_FALSE(permits.reached_preemption());
  permits.begin_step(6);
  EXPECT_FALSE(permits.knows_preemption());
  EXPECT_TRUE(permits.reached_preemption());
  EXPECT_TRUE(permits.knows_preemption());
  permits.begin_step(107);  // no lease is asked for any more
  EXPECT_TRUE(permits.reached_preemption());
}

TEST(Preemption, CountsTheStepThatALoopIsAboutToBeginWith) {
  Permits permits(std::chrono::hours(1));
  permits.start({.step = 4});
  EXPECT_EQ(permits.pause(), 5U);
}

TEST(Preemption, HoldsAStepThatHasNotBegun) {
  Permits permits(std::chrono::milliseconds(1));
  permits.start({.step = 4});
  permits.grant(100);
  permits.pause();
  expect_error(Errc::timeout, {"lease"}, [&] { permits.begin_step(5); });
}

TEST(Preemption, ThatEndsAtTheLastLeasedStepNeedsNoFurtherLease) {
  Permits permits(std::chrono::milliseconds(1));
  permits.start({});
  permits.grant(1);
  permits.pause();
  permits.end_at(1);
  permits.begin_step(1);
  EXPECT_TRUE(permits.reached_preemption());
}

}  // namespace
}  // namespace weft
