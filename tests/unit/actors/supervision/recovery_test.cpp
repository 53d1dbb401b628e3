#include "actors/supervision/recovery.hpp"

#include <gtest/gtest.h>

namespace weft::recovery_test {
namespace {

Failure killed(int worker, int signal = 9) {
  return {.code = Errc::peer_lost, .worker = worker, .signal = signal};
}
Failure crashed(int worker) { return killed(worker, 11); }
Failure thrown(Errc code) { return {.code = code, .worker = 0}; }

RecoveryPolicy any_number(std::uint64_t backoff_ms = 0) {
  return {.max_failures = -1, .backoff_ms = backoff_ms};
}

TEST(Recovery, SurvivesNothingUnlessItIsTold) {
  Recovery none({.max_failures = 0});
  EXPECT_EQ(none.refuse(killed(0), 5), "");
  Recovery never({.max_failures = 3, .restart = Restart::none});
  EXPECT_EQ(never.refuse(killed(0), 5), "");
  EXPECT_TRUE(none.failures().empty());
  EXPECT_TRUE(never.failures().empty());
}

TEST(Recovery, SurvivesSoManyFailuresWhateverIsBetweenThem) {
  Recovery recovery({.max_failures = 2});
  EXPECT_FALSE(recovery.refuse(killed(0), 5));
  recovery.resumed(5);
  EXPECT_FALSE(recovery.refuse(killed(1), 500));
  recovery.resumed(500);
  EXPECT_EQ(recovery.refuse(killed(2), 5000),
            "; run.failure.max_failures = 2 failures had happened before");
  ASSERT_EQ(recovery.failures().size(), 2U);
  EXPECT_EQ(recovery.failures()[0].worker, 0);
  EXPECT_EQ(recovery.failures()[1].worker, 1);
}

TEST(Recovery, ANegativeMaximumIsNone) {
  Recovery recovery(any_number());
  for (std::uint64_t step = 1; step <= 100; ++step) {
    ASSERT_FALSE(recovery.refuse(killed(0), step));
  }
}

TEST(Recovery, WrongUseWouldComeAgain) {
  for (const Errc code :
       {Errc::invalid_argument, Errc::mesh_mismatch, Errc::program_divergence, Errc::not_found,
        Errc::corrupt, Errc::version, Errc::unavailable, Errc::cancelled, Errc::uneven_loops}) {
    Recovery recovery(any_number());
    EXPECT_EQ(recovery.refuse(thrown(code), 5),
              "; the worker would fail in the same way again, so it is not started again")
        << to_string(code);
  }
  for (const Errc code :
       {Errc::peer_lost, Errc::timeout, Errc::no_space, Errc::io, Errc::loop_failed}) {
    Recovery recovery(any_number());
    EXPECT_FALSE(recovery.refuse(thrown(code), 5)) << to_string(code);
  }
}

TEST(Recovery, TheSameFailureThreeTimesBeforeTheFirstStepIsTheProgramsOwn) {
  Recovery recovery(any_number());
  EXPECT_FALSE(recovery.refuse(crashed(1), 0));
  EXPECT_FALSE(recovery.refuse(crashed(1), 0));
  Failure ahead = crashed(1);
  ahead.step = 1;
  EXPECT_EQ(recovery.refuse(ahead, 0),
            "; the worker failed like this 3 times, and no step was kept");
}

/// On a machine under load, several random kills may come before the first step, so a job gives up
/// only after many.
TEST(Recovery, KillsBeforeTheFirstStepAreChanceUntilTheyAreMany) {
  Recovery recovery(any_number());
  for (int i = 0; i < 19; ++i) {
    ASSERT_FALSE(recovery.refuse(killed(1), 0)) << i;
    recovery.resumed(0);
  }
  EXPECT_EQ(recovery.refuse(killed(1), 0),
            "; the worker failed like this 20 times, and no step was kept");
}

TEST(Recovery, KillsForWantOfMemoryAreTheProgramsOwn) {
  Recovery recovery(any_number());
  EXPECT_FALSE(recovery.refuse(killed(1), 0, LossKind::out_of_memory));
  EXPECT_FALSE(recovery.refuse(killed(1), 0, LossKind::out_of_memory));
  EXPECT_EQ(recovery.refuse(killed(1), 0, LossKind::out_of_memory),
            "; the worker failed like this 3 times, and no step was kept");
}

/// The same failure may come again and again: a loop that saves to a full disk fails at each save.
TEST(Recovery, TheSameFailureThreeTimesWithoutAStepInBetweenIsNoChance) {
  for (const Failure& failure : {thrown(Errc::no_space), thrown(Errc::io), thrown(Errc::timeout),
                                 thrown(Errc::loop_failed), crashed(0)}) {
    Recovery recovery(any_number());
    EXPECT_FALSE(recovery.refuse(failure, 99));
    recovery.resumed(100);
    EXPECT_FALSE(recovery.refuse(failure, 100));
    recovery.resumed(100);
    EXPECT_FALSE(recovery.refuse(failure, 100));
    recovery.resumed(100);
    EXPECT_EQ(recovery.refuse(failure, 100),
              "; the worker failed like this 3 times, and no step was taken after step 100");
  }
}

TEST(Recovery, AStepInBetweenMakesTheSameFailureChanceAgain) {
  Recovery recovery(any_number());
  for (std::uint64_t step = 1; step < 50; ++step) {
    ASSERT_FALSE(recovery.refuse(thrown(Errc::io), step));
    recovery.resumed(step);
    ASSERT_FALSE(recovery.refuse(thrown(Errc::io), step));
    recovery.resumed(step);
  }
}

TEST(Recovery, FailuresThatDifferMayStillBeChance) {
  const Failure alike = crashed(1);
  Failure other = alike;
  for (int field = 0; field < 5; ++field) {
    other = alike;
    if (field == 0) other.worker = 2;
    if (field == 1) other.signal = 6;
    if (field == 2) other.exit_code = 3;
    if (field == 3) other.code = Errc::timeout;
    if (field == 4) other.step = 2;
    Recovery recovery(any_number());
    EXPECT_FALSE(recovery.refuse(alike, 0));
    EXPECT_FALSE(recovery.refuse(alike, 0));
    EXPECT_FALSE(recovery.refuse(other, 0)) << field;
    EXPECT_TRUE(recovery.refuse(alike, 0)) << field;
  }
}

TEST(Recovery, WorkersThatFailInTurnFailAlike) {
  Recovery recovery(any_number());
  for (const int worker : {0, 1, 2, 1, 0, 2}) {
    EXPECT_FALSE(recovery.refuse(crashed(worker), 0)) << worker;
  }
  EXPECT_EQ(recovery.refuse(crashed(2), 0),
            "; the worker failed like this 3 times, and no step was kept");
}

/// A job that keeps one version of the state and has no checkpoint yet always resumes at step 0,
/// however many steps it has taken.
TEST(Recovery, StepsThatWereTakenCountThoughNoneIsKept) {
  Recovery recovery(any_number());
  Failure failure = crashed(1);
  for (failure.step = 10; failure.step < 20; ++failure.step) {
    EXPECT_FALSE(recovery.refuse(failure, 0));
  }
  failure.step = 15;
  EXPECT_FALSE(recovery.refuse(failure, 0));
  EXPECT_TRUE(recovery.refuse(failure, 0));
}

TEST(Recovery, AfterTheFirstStepKillsAreNoReason) {
  Recovery recovery(any_number());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(recovery.refuse(killed(1), 7));
}

TEST(Recovery, WaitsTwiceAsLongEachTimeUpToAMinute) {
  Recovery recovery(any_number(1000));
  EXPECT_EQ(recovery.delay_ms(), 0U);
  for (const std::uint64_t delay : {0, 1000, 2000, 4000, 8000, 16'000, 32'000, 60'000, 60'000}) {
    ASSERT_FALSE(recovery.refuse(killed(0), 7));
    EXPECT_EQ(recovery.delay_ms(), delay);
  }
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(recovery.refuse(killed(0), 7));
  EXPECT_EQ(recovery.delay_ms(), 60'000U);
}

TEST(Recovery, WorkersThatAreLostTogetherAreOneIncident) {
  RecoveryPolicy policy = any_number(1000);
  policy.max_failures = 1;
  Recovery recovery(policy);
  for (const int worker : {2, 0, 3, 1}) {
    ASSERT_FALSE(recovery.refuse(killed(worker), 7)) << worker;
    EXPECT_EQ(recovery.delay_ms(), 0U) << worker;
  }
  EXPECT_EQ(recovery.incidents(), 1);
  EXPECT_EQ(recovery.failures().size(), 4U) << "each is told";
  EXPECT_TRUE(recovery.refuse(killed(0), 7)) << "lost again meanwhile";
}

TEST(Recovery, TheSameWorkerLostAgainMeanwhileIsTheNextIncident) {
  Recovery recovery(any_number(1000));
  for (const int worker : {0, 1, 2}) ASSERT_FALSE(recovery.refuse(killed(worker), 7));
  for (const int worker : {0, 1, 2}) {
    ASSERT_FALSE(recovery.refuse(killed(worker), 7));
    EXPECT_EQ(recovery.delay_ms(), 1000U) << worker;
  }
  EXPECT_EQ(recovery.incidents(), 2);
}

TEST(Recovery, ALossOfAnotherAfterTheJobHasGoneOnIsTheNextIncident) {
  Recovery recovery(any_number(1000));
  ASSERT_FALSE(recovery.refuse(killed(0), 7));
  recovery.resumed(8);  // the other workers have run one more step
  ASSERT_FALSE(recovery.refuse(killed(1), 8));
  EXPECT_EQ(recovery.incidents(), 2);
  EXPECT_EQ(recovery.delay_ms(), 1000U) << "no step was taken";
}

TEST(Recovery, AStepThatWasTakenEndsTheRow) {
  Recovery recovery(any_number(1000));
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(recovery.refuse(killed(0), 7));
  EXPECT_EQ(recovery.delay_ms(), 2000U);
  ASSERT_FALSE(recovery.refuse(killed(0), 8));
  EXPECT_EQ(recovery.delay_ms(), 0U);
  ASSERT_FALSE(recovery.refuse(killed(0), 8));
  EXPECT_EQ(recovery.delay_ms(), 1000U);
}

}  // namespace
}  // namespace weft::recovery_test
