#include "actors/supervision/permits.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/expect_error.hpp"

namespace weft::permits_test {
namespace {

using std::chrono::milliseconds;
using testing::expect_error;
using Verdict = WorkerState::Verdict;

constexpr milliseconds kLong{60'000};

TEST(Permits, WaitsUntilTheTrainerAllowsIt) {
  Permits permits(0, kLong);
  std::jthread trainer([&] {
    permits.start({});
    permits.admit(1);
    permits.grant(10);
  });
  permits.wait_started();
  permits.wait_admitted(0, 1);
  permits.begin_step(9);
}

TEST(Permits, ACancelEndsAWaitWithItsReason) {
  Permits permits(0, kLong);
  std::jthread trainer([&] { permits.cancel("worker 3 was killed"); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { permits.wait_admitted(0, 1); });
  expect_error(Errc::cancelled, {"worker 3 was killed"}, [&] { permits.begin_run(1, 0, 7); });
  EXPECT_TRUE(permits.cancelled());
}

TEST(Permits, NobodyWaitsForAWorkerWhoseLoopHasEnded) {
  Permits permits(0, std::chrono::hours(1));
  std::jthread trainer([&] { permits.peer_ended(2, 4); });
  expect_error(Errc::uneven_loops, {"worker 2 ended its loop after 4", "number 5"},
               [&] { permits.wait_admitted(0, 5); });
  permits.admit(1);
  permits.wait_admitted(0, 5);
}

TEST(Permits, ATimeoutSaysWhatWasWaitedFor) {
  Permits permits(0, milliseconds(1));
  expect_error(Errc::timeout, {"lease", "0.001 s"}, [&] { permits.begin_step(0); });
}

TEST(Permits, ARunThatAnotherWorkerTakesNoPartInIsADivergence) {
  Permits permits(0, kLong);
  permits.begin_run(1, 0, 7);
  EXPECT_FALSE(permits.peer_ended(2, 1));
  expect_error(Errc::uneven_loops, {"worker 2", "after 1 programs"},
               [&] { permits.begin_run(2, 0, 7); });
}

TEST(Permits, NoticesARunThatHasBegunAlready) {
  Permits permits(0, kLong);
  permits.begin_run(1, 0, 7);
  permits.begin_run(2, 0, 7);
  const auto wrong = permits.peer_ended(2, 1);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->step, 7U);
  EXPECT_NE(wrong->message.find("number 2"), std::string::npos);
}

/// Another worker has a new program in run 2, in which this worker runs a known program. The other
/// worker asks for this worker's program.
TEST(Permits, ShowsTheKnownProgramOfARunThatIsAskedFor) {
  const auto start = [](Permits& permits) {
    permits.shown({.worker = 0, .sequence = 0, .run = 1, .text = "known"});
    permits.begin_run(1, 0, 7);
  };
  Permits late(0, kLong);
  start(late);
  late.begin_run(2, 0, 7);
  const auto known = late.asked(1, 2);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->sequence, 1U);
  EXPECT_EQ(known->run, 2U);
  EXPECT_EQ(known->text, "known");

  Permits early(0, kLong);
  start(early);
  EXPECT_FALSE(early.asked(1, 2));
  EXPECT_TRUE(early.begin_run(2, 0, 7));
}

/// A worker can show the program of each run that it has begun, not only of the last one.
TEST(Permits, ShowsTheProgramOfTheVeryRunThatIsAskedFor) {
  for (const std::uint64_t run : {1U, 2U, 3U}) {
    Permits permits(0, kLong);
    for (std::uint32_t program = 0; program < 3; ++program) {
      permits.shown({.worker = 0,
                     .sequence = program,
                     .run = program + 1,
                     .text = "program of run " + std::to_string(program + 1)});
      permits.begin_run(program + 1, program, 7);
    }
    const auto known = permits.asked(3, run);
    ASSERT_TRUE(known);
    EXPECT_EQ(known->text, "program of run " + std::to_string(run));
  }
}

TEST(Permits, ShowsNothingWhereItRunsTheNewProgramToo) {
  Permits permits(0, kLong);
  EXPECT_FALSE(permits.asked(0, 1));
  permits.shown({.worker = 0, .sequence = 0, .run = 1});
  EXPECT_FALSE(permits.begin_run(1, 0, 7));
}

TEST(Permits, AGenerationBeginsWithoutWhatWasAllowedBefore) {
  Permits permits(0, milliseconds(1));
  permits.start({.generation = 1});
  permits.admit(5);
  permits.grant(100);
  permits.shown({.worker = 0, .sequence = 0, .run = 1});
  permits.begin_run(1, 0, 7);
  permits.asked(1, 2);
  permits.peer_ended(2, 4);
  permits.unwind("worker 2 was killed");
  permits.start({.generation = 2, .step = 7});
  EXPECT_EQ(permits.generation(), 2U);
  EXPECT_EQ(permits.lease_to_ask(7), 7U) << "nothing is granted";
  expect_error(Errc::timeout, {"lease"}, [&] { permits.begin_step(7); });
  expect_error(Errc::timeout, {"same program"}, [&] { permits.wait_admitted(0, 5); });
  EXPECT_FALSE(permits.begin_run(2, 0, 7)) << "what was asked was of the generation before";
  EXPECT_FALSE(permits.begin_run(5, 0, 7));
}

TEST(Permits, TheEndOfAGenerationEndsItsWaits) {
  Permits permits(0, kLong);
  permits.start({.generation = 1});
  std::jthread trainer([&] { permits.unwind("worker 3 was killed"); });
  expect_error(Errc::peer_lost, {"worker 3 was killed"}, [&] { permits.begin_step(0); });
  expect_error(Errc::peer_lost, {"worker 3 was killed"}, [&] { permits.wait_admitted(0, 1); });
  expect_error(Errc::peer_lost, {"worker 3 was killed"}, [&] { permits.begin_run(1, 0, 7); });
  EXPECT_TRUE(permits.unwinding());
  permits.start({.generation = 2});
  EXPECT_FALSE(permits.unwinding());
  EXPECT_FALSE(permits.begin_run(1, 0, 7));
}

TEST(Permits, WaitsForTheGenerationAfterItsOwn) {
  Permits permits(0, kLong);
  permits.start({.generation = 1});
  permits.unwind("worker 3 was killed");
  std::jthread trainer([&] { permits.start({.generation = 2, .step = 7, .reports = 4}); });
  const Start start = permits.wait_started(1);
  EXPECT_EQ(start.generation, 2U);
  EXPECT_EQ(start.step, 7U);
  EXPECT_EQ(start.reports, 4U);
}

/// A worker must report that it has left even a generation that it never began; otherwise no worker
/// could continue.
TEST(Permits, AGenerationThatIsOverBeforeItWasNoticedHasBegunAllTheSame) {
  Permits permits(0, kLong);
  permits.start({.generation = 1});
  permits.unwind("worker 3 was killed");
  permits.start({.generation = 2});
  permits.unwind("worker 4 was killed");
  EXPECT_EQ(permits.wait_started(1).generation, 2U);
  expect_error(Errc::peer_lost, {"worker 4"}, [&] { permits.begin_step(0); });
}

TEST(Permits, ACancelIsTheLastWord) {
  Permits permits(0, kLong);
  permits.start({.generation = 1});
  permits.unwind("worker 3 was killed");
  permits.cancel("it can't be started again");
  permits.unwind("worker 4 was killed");
  expect_error(Errc::cancelled, {"can't be started"}, [&] { permits.wait_started(1); });
  expect_error(Errc::cancelled, {"can't be started"}, [&] { permits.wait_started(0); });
  expect_error(Errc::cancelled, {"can't be started"}, [&] { permits.begin_step(0); });
}

TEST(Permits, TheVerdictIsTheTrainersLastWord) {
  Permits good(0, kLong), bad(0, kLong), lost(0, kLong), failed(0, kLong);
  EXPECT_TRUE(bad.loop_ended({.error = 1}));
  std::jthread trainer([&] {
    good.stop();
    bad.stop();
    lost.unwind("worker 3 was killed");
    failed.unwind("worker 3 was killed");
    failed.cancel("it can't be started again");
  });
  EXPECT_EQ(good.wait_verdict(), Verdict::leaves_well);
  EXPECT_EQ(bad.wait_verdict(), Verdict::leaves_badly);
  EXPECT_EQ(lost.wait_verdict(), Verdict::unwinds);
  trainer.join();
  EXPECT_EQ(failed.wait_verdict(), Verdict::leaves_badly);
  good.unwind("worker 3 was killed");
  EXPECT_EQ(good.wait_verdict(), Verdict::leaves_well) << "the job is over";
}

/// Save 9 fails because another worker couldn't write its part. The result of save 5 is still
/// known.
TEST(WorkerState, KnowsHowASaveEndedWhenALaterOneHasFailed) {
  WorkerState state(1);
  state.start({});
  state.saved({.step = 3, .save = 5, .path = "at 3"});
  state.saved({.step = 6, .save = 9, .error = static_cast<std::uint8_t>(Errc::no_space)});
  ASSERT_NE(state.save_ended(5), nullptr);
  EXPECT_EQ(state.save_ended(5)->path, "at 3");
  EXPECT_NE(state.save_ended(9)->error, 0);
  EXPECT_EQ(state.save_ended(7), nullptr);
}

TEST(WorkerState, ALoopThatHasToLeaveItsGenerationTellsOfNoEnd) {
  WorkerState state(3);
  state.start({.generation = 2});
  state.unwind("worker 1 was killed");
  EXPECT_FALSE(state.loop_ended({.generation = 2, .error = 1, .message = "it noticed"}));
  EXPECT_EQ(state.verdict(), Verdict::unwinds);
}

TEST(WorkerState, SaysWhoseLoopHasEndedAndWhetherItWasToldTo) {
  WorkerState state(3);
  state.start({.step = 4});
  EXPECT_FALSE(state.loop_ended({.step = 5})->preempted);
  state.end_at(5);
  EXPECT_EQ(state.begin_step(5), WorkerState::StepBegin::begun);
  EXPECT_TRUE(state.reached_preemption());
  const auto ended = state.loop_ended({.step = 5, .runs = 9});
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->worker, 3);
  EXPECT_EQ(ended->runs, 9U);
  EXPECT_TRUE(ended->preempted);
  EXPECT_FALSE(state.loop_ended({.step = 5, .error = 1})->preempted) << "it has failed";
}

TEST(WorkerState, WithoutTheTrainersWordAFailedLoopLeavesBadly) {
  WorkerState state(0);
  state.start({});
  state.loop_ended({.error = 1});
  EXPECT_EQ(state.verdict(), Verdict::waits);
  EXPECT_EQ(state.verdict_without_trainer(), Verdict::leaves_badly);
  state.loop_ended({});
  EXPECT_EQ(state.verdict_without_trainer(), Verdict::leaves_well);
}

TEST(WorkerState, AsksForALeaseOnceAheadOfItsNeedAndAgainWithoutOne) {
  WorkerState state(0, 4);
  state.start({});
  state.grant(10);
  EXPECT_FALSE(state.lease_to_ask(5));
  EXPECT_EQ(state.lease_to_ask(6), 10U);
  EXPECT_FALSE(state.lease_to_ask(7));
  EXPECT_FALSE(state.lease_to_ask(9));
  EXPECT_EQ(state.lease_to_ask(10), 10U);
}

/// The worker's actor sends this report to the trainer unchanged, so it must name the worker.
TEST(WorkerState, NamesItselfWhereARunIsOvertaken) {
  WorkerState state(3);
  state.start({.generation = 2});
  state.begin_run(1, 0, 7, {});
  const auto wrong = state.peer_ended(1, 0, "");
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->worker, 3);
  EXPECT_EQ(wrong->generation, 2U);
}

/// A worker that left only the generation of a cancelled job would wait for the next generation.
TEST(Permits, ACancelledJobIsLeftAndNotItsGenerationOnly) {
  Permits permits(0, kLong);
  permits.start({.generation = 1});
  permits.unwind("worker 3 was killed");
  EXPECT_TRUE(permits.unwinding());
  permits.cancel("3 of 4 workers were not ready");
  EXPECT_FALSE(permits.unwinding());
  EXPECT_EQ(permits.wait_verdict(), Verdict::leaves_badly);
  expect_error(Errc::cancelled, {"3 of 4 workers"}, [&] { permits.wait_started(1); });
}

TEST(Permits, ASaveIsWaitedFor) {
  Permits permits(0, kLong);
  permits.start({.generation = 2});
  std::jthread trainer([&] {
    permits.saved({.generation = 1, .save = 4, .path = "of another generation"});
    permits.saved({.generation = 2, .save = 3, .path = "an earlier one"});
    permits.saved({.generation = 2, .save = 4, .path = "this"});
  });
  EXPECT_EQ(permits.wait_saved(4).path, "this");
}

TEST(Permits, ALossEndsTheWaitForASave) {
  Permits permits(0, kLong);
  permits.start({});
  std::jthread trainer([&] { permits.unwind("worker 1 was killed"); });
  expect_error(Errc::peer_lost, {"worker 1 was killed"}, [&] { permits.wait_saved(4); });
}

TEST(Permits, ASaveIsWaitedForAsLongAsItTakes) {
  Permits permits(0, std::chrono::milliseconds(0));
  permits.start({});
  expect_error(Errc::timeout, {"backend.timeout_s"}, [&] { permits.wait_admitted(0, 1); });
  std::jthread trainer([&] { permits.saved({.save = 4, .path = "there"}); });
  EXPECT_EQ(permits.wait_saved(4).path, "there");
}

TEST(Permits, PartsAreJoinedWhenTheTrainerSaysSo) {
  Permits permits(0, kLong);
  permits.start({.generation = 2});
  permits.begin_part(4);
  std::jthread trainer([&] {
    permits.join_parts(1, 9);
    permits.join_parts(2, 4);
  });
  EXPECT_TRUE(permits.wait_parts(4));
}

TEST(Permits, PartsAreNotJoinedAfterAFailureOrALoss) {
  Permits permits(0, kLong);
  permits.start({});
  permits.begin_part(4);
  {
    std::jthread trainer([&] { permits.saved({.save = 4, .error = 1, .message = "disk full"}); });
    EXPECT_FALSE(permits.wait_parts(4));
  }
  EXPECT_EQ(permits.wait_end(4)->message, "disk full");
  permits.begin_part(5);
  {
    std::jthread owner([&] { permits.leave_part(); });
    EXPECT_FALSE(permits.wait_parts(5));
  }
  EXPECT_FALSE(permits.wait_end(5));
  permits.begin_part(6);
  std::jthread trainer([&] { permits.unwind("worker 1 was killed"); });
  EXPECT_FALSE(permits.wait_parts(6));
  EXPECT_FALSE(permits.wait_end(6));
}

TEST(Permits, APartThatAnotherWorkersFailureMakesUselessIsDropped) {
  Permits permits(0, kLong);
  permits.start({.generation = 2});
  const std::atomic<bool>& is_dropped = permits.begin_part(4);
  permits.drop_parts(1, 4);
  EXPECT_FALSE(is_dropped) << "of another generation";
  permits.drop_parts(2, 4);
  EXPECT_TRUE(is_dropped);
  permits.begin_part(5);
  EXPECT_FALSE(is_dropped);
  permits.drop_parts(2, 6);
  permits.begin_part(6);
  EXPECT_TRUE(is_dropped) << "before this worker began";
}

}  // namespace
}  // namespace weft::permits_test
