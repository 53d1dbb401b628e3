#include "actors/supervision/job_outcome.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace weft {
namespace {

using Verdict = JobOutcome::SignalVerdict;

const Failure kCancelled{.code = Errc::cancelled, .message = "cancelled"};
const Failure kDiskFull{.code = Errc::io, .message = "disk full"};
const Failure kKilled{.code = Errc::peer_lost, .message = "worker 1 was killed"};

class JobOutcomeTest : public ::testing::Test {
 protected:
  Verdict signal(int signal, int at_ms) {
    return outcome.on_signal(signal, JobOutcome::Time() + std::chrono::milliseconds(at_ms));
  }
  JobOutcome outcome;
};

TEST_F(JobOutcomeTest, TheFirstSigtermStartsTheGraceHoweverOftenItComes) {
  EXPECT_EQ(signal(SIGTERM, 0), Verdict::preempt);
  for (const int at_ms : {0, 1, 700, 2000}) EXPECT_EQ(signal(SIGTERM, at_ms), Verdict::ignore);
}

TEST_F(JobOutcomeTest, ASecondSigtermAfterTwoSecondsCancels) {
  signal(SIGTERM, 100);
  EXPECT_EQ(signal(SIGTERM, 2101), Verdict::cancel);
}

TEST_F(JobOutcomeTest, OtherSignalsCancelAtOnce) {
  for (const int other : {SIGINT, SIGHUP}) {
    outcome = {};
    EXPECT_EQ(signal(other, 0), Verdict::cancel);
    outcome = {};
    signal(SIGTERM, 0);
    EXPECT_EQ(signal(other, 1), Verdict::cancel);
  }
}

TEST_F(JobOutcomeTest, ASignalToACancelledJobEndsTheProcess) {
  outcome.on_own_failure(kCancelled);
  EXPECT_EQ(signal(SIGTERM, 0), Verdict::leave);
  EXPECT_EQ(signal(SIGINT, 1), Verdict::leave);
}

/// The job has saved, and ended, before the group got its SIGTERM.
TEST_F(JobOutcomeTest, WhatComesWithTheFirstSigtermNeverEndsTheProcess) {
  signal(SIGTERM, 0);
  outcome.on_job_ended(kCancelled);
  EXPECT_EQ(signal(SIGTERM, 1), Verdict::ignore);
  EXPECT_EQ(signal(SIGTERM, 2001), Verdict::leave);
}

TEST_F(JobOutcomeTest, AJobWhoseLoopsReturnedHasEndedWell) {
  outcome.on_job_ended({});
  EXPECT_FALSE(outcome.failure());
  EXPECT_EQ(outcome.ended_by(), EndedBy::loops);
}

TEST_F(JobOutcomeTest, TheWorkersFailureComesBeforeOneOfTheTrainersSide) {
  EXPECT_TRUE(outcome.on_own_failure(kDiskFull));
  EXPECT_FALSE(outcome.on_own_failure(kCancelled)) << "the first one counts";
  EXPECT_EQ(outcome.failure()->message, "disk full");
  outcome.on_job_ended(kKilled);
  EXPECT_EQ(outcome.failure()->message, "worker 1 was killed");
  EXPECT_EQ(outcome.ended_by(), EndedBy::failure);
}

TEST_F(JobOutcomeTest, ACancellationThatComesTooLateChangesNothing) {
  outcome.on_job_ended({});
  outcome.on_request(EndedBy::cancel);
  outcome.on_own_failure(kCancelled);
  EXPECT_FALSE(outcome.failure());
  EXPECT_EQ(outcome.ended_by(), EndedBy::loops);
}

TEST_F(JobOutcomeTest, AResultThatCanNotBeWrittenIsAFailureHoweverLate) {
  outcome.on_job_ended({});
  outcome.on_own_failure(kDiskFull);
  EXPECT_EQ(outcome.failure()->message, "disk full");
  EXPECT_EQ(outcome.ended_by(), EndedBy::failure);
}

TEST_F(JobOutcomeTest, TheFirstRequestHasEndedACancelledJob) {
  outcome.on_request(EndedBy::stop);
  signal(SIGINT, 0);
  outcome.on_job_ended(kCancelled);
  EXPECT_EQ(outcome.ended_by(), EndedBy::stop);
}

TEST_F(JobOutcomeTest, AJobThatAWorkerWasToldToEndHasEndedByItsSignal) {
  outcome.on_job_ended(kCancelled);
  EXPECT_EQ(outcome.ended_by(), EndedBy::signal);
}

TEST_F(JobOutcomeTest, ACallbackThatThrewHasEndedItWhateverCameOfThat) {
  outcome.on_callback_threw();
  EXPECT_TRUE(outcome.has_failed_here());
  outcome.on_job_ended(Failure{.code = Errc::loop_failed, .message = "a callback threw"});
  EXPECT_EQ(outcome.ended_by(), EndedBy::callback);
}

}  // namespace
}  // namespace weft
