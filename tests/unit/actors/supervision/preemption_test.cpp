/// Tests JobState in a job that is told to end soon, and the Permits of its workers.

#include <gtest/gtest.h>

#include <thread>

#include <weft/train/train_context.hpp>

#include "actors/supervision/job_state.hpp"
#include "actors/supervision/permits.hpp"
#include "tests/support/action_text.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::preemption_test {
namespace {

using testing::expect_error;
using testing::words;

constexpr const char* kWhy = "the trainer (pid 7) got SIGTERM";

JobState gathered(int workers, std::uint64_t committed = 0) {
  JobState job(
      {.num_workers = workers, .recovery = {.max_failures = -1}, .lease_steps = 10, .grace_s = 25});
  for (int w = 0; w < workers; ++w) job.started(w, 100 + w);
  for (int w = 0; w < workers; ++w) job.joined(w, 100 + w, committed);
  return job;
}

LoopEnded ended(int worker, std::uint64_t step, bool preempted) {
  return {.worker = worker, .step = step, .runs = step, .preempted = preempted};
}

TEST(Preemption, EndsAllLoopsAtTheFirstStepThatNobodyHasBegun) {
  JobState job = gathered(3);
  EXPECT_EQ(words(job.preempt(kWhy)), "pause, warn, grace 24000");
  EXPECT_TRUE(job.preempt("again").empty());
  EXPECT_TRUE(job.lease_wanted(9).empty());
  EXPECT_TRUE(job.paused(0, 1, 5).empty());
  EXPECT_TRUE(job.paused(2, 1, 6).empty());
  EXPECT_EQ(words(job.paused(1, 1, 4)), "end at 6");
  EXPECT_EQ(job.loop_ended(ended(0, 6, true), 0).size(), 1U);
  EXPECT_EQ(job.loop_ended(ended(1, 6, true), 0).size(), 1U);
  EXPECT_EQ(words(job.loop_ended(ended(2, 6, true), 0).back()), "stop");
  ASSERT_TRUE(job.failure());
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message, "the trainer (pid 7) got SIGTERM; all loops ended at step 6");
}

TEST(Preemption, ALoopThatWasDoneBeforeItKnewHasSucceeded) {
  JobState job = gathered(1);
  job.preempt(kWhy);
  EXPECT_EQ(words(job.loop_ended(ended(0, 6, false), 0).back()), "stop");
  EXPECT_EQ(job.phase(), JobPhase::succeeded);
  EXPECT_FALSE(job.failure());
}

/// The process of a loop that is done may have ended too.
TEST(Preemption, DoesNotWaitForALoopThatIsDone) {
  JobState first = gathered(2);
  first.loop_ended(ended(1, 6, false), 0);
  first.process_ended({.worker = 1, .signal = 9}, {}, 0);
  first.preempt(kWhy);
  EXPECT_EQ(words(first.paused(0, 1, 5)), "end at 6");

  JobState later = gathered(2);
  later.preempt(kWhy);
  EXPECT_TRUE(later.paused(0, 1, 5).empty());
  const Actions actions = later.loop_ended(ended(1, 6, false), 0);
  EXPECT_EQ(words(actions), "1 ended after 6, end at 6");
}

TEST(Preemption, LeavesHalfOfAShortGraceToEndTheProcesses) {
  JobState job({.num_workers = 1, .grace_s = 0.5});
  job.joined(0, 100, 0);
  EXPECT_EQ(words(job.preempt(kWhy)), "pause, warn, grace 250");
}

TEST(Preemption, WithoutGraceCancelsTheJob) {
  JobState job({.num_workers = 1, .grace_s = 0});
  job.joined(0, 100, 0);
  EXPECT_EQ(words(job.preempt(kWhy)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message, kWhy);
}

TEST(Preemption, ComesOfAWorkerThatSIGTERMEnds) {
  JobState job = gathered(2);
  job.asks();
  EXPECT_EQ(words(job.process_ended({.worker = 1, .signal = 15}, {.step = 3}, 2)),
            "pause, warn, grace 24000, unwind, gather, link grace 1 #2");
  EXPECT_EQ(words(job.preempt("again")), "") << "it is preempted already";
  JobState ended_loop = gathered(2);
  ended_loop.loop_ended(ended(1, 6, false), 0);
  EXPECT_EQ(words(ended_loop.process_ended({.worker = 1, .signal = 15}, {}, 0)),
            "pause, warn, grace 24000")
      << "its loop had ended";
  EXPECT_FALSE(ended_loop.is_lost(1));
  EXPECT_TRUE(job.is_lost(1));
}

TEST(Preemption, EndsAJobThatHasNothingYet) {
  JobState job({.num_workers = 2, .grace_s = 25});
  EXPECT_EQ(words(job.preempt(kWhy)), "cancel");
  EXPECT_EQ(job.failure()->message, kWhy);
}

TEST(Preemption, IsAskedForAgainWhenAWorkerHasBeenLost) {
  JobState job = gathered(2);
  job.asks();
  job.preempt(kWhy);
  job.paused(0, 1, 5);
  job.process_ended({.worker = 1, .signal = 9}, {}, 4);
  EXPECT_TRUE(job.paused(1, 1, 5).empty());
  job.unwound(0, 2, 4);
  job.started(1, 111);
  const Actions actions = job.joined(1, 111, 4);
  EXPECT_EQ(words(actions), "prepare at 4, start at 4, grant 14, pause");
  EXPECT_TRUE(job.paused(1, 2, 5).empty());
  EXPECT_EQ(words(job.paused(0, 2, 5)), "end at 5");
}

TEST(Preemption, OfAJobThatGathersAgainWaitsForItsWorkers) {
  JobState job = gathered(2);
  job.asks();
  job.process_ended({.worker = 1, .signal = 9}, {}, 4);
  EXPECT_EQ(words(job.preempt(kWhy)), "warn, grace 24000");
  job.unwound(0, 2, 4);
  EXPECT_EQ(words(job.joined(1, 111, 4).back()), "pause");
}

TEST(Preemption, IsNotWaitedForBeyondItsGrace) {
  JobState job = gathered(2);
  job.preempt(kWhy);
  EXPECT_EQ(words(job.grace_over()), "cancel");
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; its loops had not ended within run.grace_s = 25: "
            "save a checkpoint and return when ctx.reached_preemption() is true");
  EXPECT_TRUE(job.grace_over().empty());
}

/// Returns a job whose worker 1 died twice without a step in between, so its restart is delayed.
JobState waiting_to_start_again(bool asks) {
  JobState job({.num_workers = 2,
                .recovery = {.max_failures = -1, .backoff_ms = 60'000},
                .lease_steps = 10,
                .grace_s = 25});
  for (int w = 0; w < 2; ++w) job.joined(w, 100 + w, 4);
  if (asks) job.asks();
  for (int i = 0; i < 2; ++i) job.process_ended({.worker = 1, .signal = 9}, {}, 4);
  return job;
}

TEST(Preemption, DuringTheBackoffStartsTheLostWorkerAtOnce) {
  JobState job = waiting_to_start_again(true);
  EXPECT_EQ(words(job.preempt(kWhy)), "link grace 1 #3, warn, grace 24000");
  EXPECT_TRUE(job.restart_due(1).empty()) << "it has been started";
  job.unwound(0, 2, 4);
  EXPECT_EQ(words(job.joined(1, 111, 4).back()), "pause");
}

TEST(Preemption, DuringTheBackoffEndsAJobWhoseLoopsDontAsk) {
  JobState job = waiting_to_start_again(false);
  EXPECT_EQ(words(job.preempt(kWhy)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; this came while the job waited to continue after "
            "a loss, and no loop calls ctx.reached_preemption()");
}

TEST(Preemption, WaitsForNoBackoff) {
  JobState job = waiting_to_start_again(true);
  job.preempt(kWhy);
  EXPECT_EQ(words(job.process_ended({.worker = 1, .signal = 9}, {}, 4)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; worker 1 (pid 101) was killed by signal 9 "
            "(SIGKILL) before it joined; the job doesn't wait for this worker, because it "
            "isn't the first loss since the last step");
}

TEST(Preemption, ThatOutlastsARecoveryDoesNotBlameTheLoops) {
  JobState job = waiting_to_start_again(true);
  job.preempt(kWhy);
  const std::vector<Sighting> sightings{{.worker = 0, .where = {.step = 5}, .process = "is gone"}};
  EXPECT_EQ(words(job.grace_over(sightings)), "cancel");
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; the job had not continued after a loss within "
            "run.grace_s = 25: worker 0 (pid 100) has not left its loop at step 5, and is "
            "gone, worker 1 (pid 101) has not joined");
}

TEST(Preemption, AWorkerThatSIGTERMKillsIsNoFailure) {
  JobState job(
      {.num_workers = 2, .recovery = {.max_failures = 0}, .lease_steps = 10, .grace_s = 25});
  for (int w = 0; w < 2; ++w) job.joined(w, 100 + w, 0);
  job.preempt(kWhy);
  EXPECT_EQ(words(job.process_ended({.worker = 1, .signal = 15}, {.step = 3}, 2)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; worker 1 (pid 101) was killed by signal 15 "
            "(SIGTERM) at step 3, before its loop could end");
}

TEST(Preemption, AWorkerThatIsLostOtherwiseIsAFailure) {
  JobState job(
      {.num_workers = 2, .recovery = {.max_failures = 0}, .lease_steps = 10, .grace_s = 25});
  for (int w = 0; w < 2; ++w) job.joined(w, 100 + w, 0);
  job.preempt(kWhy);
  job.process_ended({.worker = 1, .signal = 11}, {.step = 3}, 2);
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
}

TEST(Preemption, SaysThatLoopsWereLeftWhichDontAsk) {
  JobState job = gathered(2);
  job.preempt(kWhy);
  for (int w = 0; w < 2; ++w) job.paused(w, 1, 5);
  for (int w = 0; w < 2; ++w) {
    job.loop_ended({.worker = w, .step = 6, .runs = 6, .preempted = true, .left = true}, 0);
  }
  ASSERT_TRUE(job.failure());
  EXPECT_EQ(job.failure()->code, Errc::cancelled);
  EXPECT_EQ(job.failure()->step, 6U);
  EXPECT_EQ(job.failure()->message,
            "the trainer (pid 7) got SIGTERM; all loops were ended, without a checkpoint, at "
            "step 6: no loop had called ctx.reached_preemption(); when it returns true, save a "
            "checkpoint and return");
}

TEST(Preemption, LeavesALoopThatHasNotAskedByItsNextStep) {
  Permits permits(0, std::chrono::hours(1));
  permits.start({.step = 4});
  permits.grant(100);
  permits.pause();
  permits.end_at(5);
  permits.begin_step(5);  // in this step the loop may still ask
  EXPECT_FALSE(permits.knows_preemption());
  EXPECT_THROW(permits.begin_step(6), Preempted);
  EXPECT_TRUE(permits.knows_preemption());
}

TEST(Preemption, TrustsALoopThatHasEverAsked) {
  for (const bool before : {true, false}) {
    Permits permits(0, std::chrono::hours(1));
    permits.start({.step = 4, .asks = before});  // asked in an earlier generation
    permits.grant(100);
    if (!before) permits.reached_preemption();
    permits.pause();
    permits.end_at(5);
    for (std::uint64_t step = 5; step < 20; ++step) permits.begin_step(step);
    EXPECT_TRUE(permits.reached_preemption());
  }
}

TEST(Preemption, TellsTheTrainerOnceThatALoopAsks) {
  Permits permits(0, std::chrono::hours(1));
  int told = 0;
  permits.on_first_question([&] { ++told; });
  for (std::uint64_t generation = 1; generation < 3; ++generation) {
    permits.start({.generation = generation});
    for (int i = 0; i < 2; ++i) permits.reached_preemption();
  }
  EXPECT_EQ(told, 1);
}

TEST(Preemption, LetsALoopFinishItsStepAndComeToTheLast) {
  Permits permits(0, std::chrono::hours(1));
  permits.start({.step = 4});
  permits.grant(100);
  permits.begin_step(4);
  EXPECT_EQ(permits.pause(), 5U);
  permits.begin_step(4);  // this step has begun already
  EXPECT_FALSE(permits.reached_preemption());
  std::jthread trainer([&] { permits.end_at(6); });
  permits.begin_step(5);
  EXPECT_FALSE(permits.reached_preemption());
  permits.begin_step(6);
  EXPECT_FALSE(permits.knows_preemption());
  EXPECT_TRUE(permits.reached_preemption());
  EXPECT_TRUE(permits.knows_preemption());
  permits.begin_step(107);  // the lease doesn't limit the loop any more
  EXPECT_TRUE(permits.reached_preemption());
}

TEST(Preemption, CountsTheStepThatALoopIsAboutToBeginWith) {
  Permits permits(0, std::chrono::hours(1));
  permits.start({.step = 4});
  EXPECT_EQ(permits.pause(), 5U);
}

TEST(Preemption, HoldsAStepThatHasNotBegun) {
  Permits permits(0, std::chrono::milliseconds(1));
  permits.start({.step = 4});
  permits.grant(100);
  permits.pause();
  expect_error(Errc::timeout, {"lease"}, [&] { permits.begin_step(5); });
}

TEST(Preemption, ThatEndsAtTheLastLeasedStepNeedsNoFurtherLease) {
  Permits permits(0, std::chrono::milliseconds(1));
  permits.start({});
  permits.grant(1);
  permits.pause();
  permits.end_at(1);
  permits.begin_step(1);
  EXPECT_TRUE(permits.reached_preemption());
}

}  // namespace
}  // namespace weft::preemption_test
