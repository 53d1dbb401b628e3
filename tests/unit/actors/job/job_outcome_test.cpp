#include "actors/job/job_outcome.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "actors/supervision/action.hpp"

namespace weft::job_outcome_test {
namespace {

constexpr JobOutcome::Time kStart{};

JobOutcome::Time at(int ms) { return kStart + std::chrono::milliseconds(ms); }

const Failure kCancelled{.code = Errc::cancelled, .message = "cancelled"};
const Failure kDiskFull{.code = Errc::io, .message = "disk full"};
const Failure kKilled{.code = Errc::peer_lost, .message = "worker 1 was killed"};

/// Prints actions as "kill, drop output".
std::string words(const JobOutcome::Actions& actions) {
  std::string text;
  for (const auto& action : actions) {
    if (!text.empty()) text += ", ";
    text += std::visit(Overloaded{
                           [](const JobOutcome::Preempt&) { return std::string("preempt"); },
                           [](const JobOutcome::Cancel& cancel) { return "cancel: " + cancel.why; },
                           [](const JobOutcome::KillProcesses&) { return std::string("kill"); },
                           [](const JobOutcome::DropOutput&) { return std::string("drop output"); },
                           [](const JobOutcome::EndProgram& end) {
                             return "end by " + std::to_string(end.signal);
                           },
                           [](const JobOutcome::WarnOfLoop&) { return std::string("warn"); },
                       },
                       action);
  }
  return text;
}

class JobOutcomeTest : public ::testing::Test {
 protected:
  std::string signal(int signal, int at_ms) {
    return words(outcome.on_signal(signal, "a signal", at(at_ms)));
  }
  JobOutcome outcome;
};

TEST_F(JobOutcomeTest, TheFirstSigtermStartsTheGraceHoweverOftenItComes) {
  EXPECT_EQ(signal(SIGTERM, 0), "preempt");
  for (const int at_ms : {0, 1, 700, 2000}) EXPECT_EQ(signal(SIGTERM, at_ms), "");
}

TEST_F(JobOutcomeTest, ASecondSigtermAfterTwoSecondsCancels) {
  signal(SIGTERM, 100);
  EXPECT_EQ(signal(SIGTERM, 2101), "cancel: a signal");
}

TEST_F(JobOutcomeTest, OtherSignalsCancelAtOnce) {
  for (const int other : {SIGINT, SIGHUP}) {
    outcome = JobOutcome();
    EXPECT_EQ(signal(other, 0), "cancel: a signal");
    outcome = JobOutcome();
    signal(SIGTERM, 0);
    EXPECT_EQ(signal(other, 1), "cancel: a signal");
  }
}

TEST_F(JobOutcomeTest, ASignalToACancelledJobWaitsForNoOutput) {
  outcome.on_own_failure(kCancelled, kStart);
  EXPECT_EQ(signal(SIGTERM, 0), "drop output");
  EXPECT_EQ(signal(SIGINT, 1), "drop output");
}

/// The job had saved and ended before SIGTERM reached the rest of its process group.
TEST_F(JobOutcomeTest, ASigtermOfTheSameRequestIsIgnoredAfterTheEndOfTheJobToo) {
  signal(SIGTERM, 0);
  outcome.on_job_ended(kCancelled, kStart);
  EXPECT_EQ(signal(SIGTERM, 1), "");
  EXPECT_EQ(signal(SIGTERM, 2001), "drop output");
}

TEST_F(JobOutcomeTest, ProcessesHaveTenSecondsToEndAfterAJobThatWentWell) {
  EXPECT_FALSE(outcome.deadline());
  outcome.on_job_ended({}, at(5));
  EXPECT_EQ(outcome.deadline(), at(10'005));
  EXPECT_EQ(words(outcome.on_time(at(10'004))), "");
  EXPECT_EQ(words(outcome.on_time(at(10'005))), "kill");
  EXPECT_FALSE(outcome.deadline());
  EXPECT_EQ(words(outcome.on_time(at(99'000))), "") << "once";
}

TEST_F(JobOutcomeTest, ProcessesHaveASecondToEndAfterAFailure) {
  outcome.on_job_ended(kKilled, kStart);
  EXPECT_EQ(outcome.deadline(), at(1000));
  outcome = JobOutcome();
  outcome.on_job_ended({}, kStart);
  EXPECT_EQ(words(outcome.on_own_failure(kDiskFull, at(20))), "cancel: disk full");
  EXPECT_EQ(outcome.deadline(), at(1020)) << "of the trainer's process";
  EXPECT_EQ(words(outcome.on_own_failure(kCancelled, at(900))), "") << "the first one counts";
  EXPECT_EQ(outcome.deadline(), at(1020));
}

TEST_F(JobOutcomeTest, OutputIsWaitedForUnlessTheJobWasToldToEndOrNobodyMayReadIt) {
  outcome.on_request(EndedBy::stop, "stop", kStart);
  outcome.on_job_ended(kCancelled, kStart);
  EXPECT_EQ(words(outcome.on_time(at(1000))), "kill, drop output");
  JobOutcome background(true);
  background.on_job_ended({}, kStart);
  EXPECT_EQ(words(background.on_time(at(10'000))), "kill, drop output");
}

TEST_F(JobOutcomeTest, ALoopOfThisProcessThatDoesNotReturnIsWarnedOf) {
  outcome.on_local_loop(true);
  outcome.on_job_ended(kKilled, kStart);
  EXPECT_FALSE(outcome.is_over());
  EXPECT_EQ(words(outcome.on_time(at(1000))), "kill, warn");
  outcome.on_local_loop(false);
  EXPECT_TRUE(outcome.is_over());
}

TEST_F(JobOutcomeTest, ASecondSignalEndsTheProgramOfALoopThatDoesNotReturn) {
  outcome.on_local_loop(true);
  EXPECT_EQ(signal(SIGINT, 0), "cancel: a signal");
  outcome.on_job_ended(kCancelled, at(1));
  EXPECT_EQ(signal(SIGINT, 2), "drop output") << "it has a second to return";
  EXPECT_EQ(words(outcome.on_time(at(1001))),
            "kill, drop output, end by " + std::to_string(SIGINT) + ", warn");
  EXPECT_EQ(signal(SIGTERM, 1002), "drop output, end by " + std::to_string(SIGTERM));
  outcome.on_local_loop(false);
  EXPECT_EQ(signal(SIGTERM, 1003), "drop output") << "it has returned";
}

/// The loop may compile a program for a long time, and nobody sends SIGTERM twice.
TEST_F(JobOutcomeTest, OneSigtermEndsTheProgramOfALoopThatDoesNotReturnInItsGrace) {
  outcome.on_local_loop(true);
  EXPECT_EQ(signal(SIGTERM, 0), "preempt");
  outcome.on_job_ended(kCancelled, at(25'000));
  EXPECT_EQ(words(outcome.on_time(at(26'000))),
            "kill, drop output, end by " + std::to_string(SIGTERM) + ", warn");
}

TEST_F(JobOutcomeTest, NoProcessIsStartedForAJobThatIsOver) {
  EXPECT_TRUE(outcome.goes_on());
  outcome.on_job_ended({}, kStart);
  EXPECT_FALSE(outcome.goes_on());
  EXPECT_TRUE(outcome.may_call_back()) << "reports may still come";
  outcome = JobOutcome();
  outcome.on_own_failure(kDiskFull, kStart);
  EXPECT_FALSE(outcome.goes_on());
  EXPECT_FALSE(outcome.may_call_back());
}

TEST_F(JobOutcomeTest, AJobWhoseLoopsReturnedHasEndedWell) {
  outcome.on_job_ended({}, kStart);
  EXPECT_FALSE(outcome.failure());
  EXPECT_EQ(outcome.ended_by(), EndedBy::loops);
}

TEST_F(JobOutcomeTest, TheWorkersFailureComesBeforeOneOfTheTrainersSide) {
  outcome.on_own_failure(kDiskFull, kStart);
  outcome.on_own_failure(kCancelled, kStart);
  EXPECT_EQ(outcome.failure()->message, "disk full");
  outcome.on_job_ended(kKilled, kStart);
  EXPECT_EQ(outcome.failure()->message, "worker 1 was killed");
  EXPECT_EQ(outcome.ended_by(), EndedBy::failure);
}

TEST_F(JobOutcomeTest, ACancellationThatComesTooLateChangesNothing) {
  outcome.on_job_ended({}, kStart);
  EXPECT_EQ(words(outcome.on_request(EndedBy::cancel, "cancelled", kStart)), "cancel: cancelled");
  EXPECT_FALSE(outcome.failure());
  EXPECT_EQ(outcome.ended_by(), EndedBy::loops);
}

TEST_F(JobOutcomeTest, AResultThatCanNotBeWrittenIsAFailureHoweverLate) {
  outcome.on_job_ended({}, kStart);
  outcome.on_own_failure(kDiskFull, kStart);
  EXPECT_EQ(outcome.failure()->message, "disk full");
  EXPECT_EQ(outcome.ended_by(), EndedBy::failure);
}

TEST_F(JobOutcomeTest, TheFirstRequestHasEndedACancelledJob) {
  EXPECT_EQ(words(outcome.on_request(EndedBy::stop, "stop", kStart)), "preempt");
  signal(SIGINT, 0);
  outcome.on_job_ended(kCancelled, kStart);
  EXPECT_EQ(outcome.ended_by(), EndedBy::stop);
}

TEST_F(JobOutcomeTest, AJobThatAWorkerWasToldToEndHasEndedByItsSignal) {
  outcome.on_job_ended(kCancelled, kStart);
  EXPECT_EQ(outcome.ended_by(), EndedBy::signal);
}

TEST_F(JobOutcomeTest, ACallbackThatThrewHasEndedItWhateverCameOfThat) {
  EXPECT_EQ(words(outcome.on_callback_threw()), "cancel: a callback threw an exception");
  EXPECT_FALSE(outcome.may_call_back());
  outcome.on_job_ended(Failure{.code = Errc::loop_failed, .message = "a callback threw"}, kStart);
  EXPECT_EQ(outcome.ended_by(), EndedBy::callback);
}

}  // namespace
}  // namespace weft::job_outcome_test
