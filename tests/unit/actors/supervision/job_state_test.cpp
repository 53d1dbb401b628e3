#include "actors/supervision/job_state.hpp"

#include <gtest/gtest.h>

#include "tests/support/action_text.hpp"

namespace weft::job_state_test {
namespace {

using testing::words;

JobState joined(int workers) {
  JobState job({.num_workers = workers, .timeout_s = 5});
  for (int w = 0; w < workers; ++w) {
    job.started(w, 100 + w);
    job.joined(w, 100 + w, 0);
  }
  return job;
}

ProgramSeen seen(int worker, std::uint64_t fingerprint, std::string text) {
  return {.worker = worker,
          .sequence = 0,
          .run = 1,
          .fingerprint_low = fingerprint,
          .fingerprint_high = 0,
          .text = std::move(text)};
}

TEST(JobState, StartsOnceAllHaveJoined) {
  JobState job({.num_workers = 2, .timeout_s = 5});
  EXPECT_TRUE(job.joined(1, 11, 0).empty());
  EXPECT_EQ(words(job.joined(0, 10, 0)), "prepare at 0, start at 0, grant 64");
  EXPECT_EQ(job.phase(), JobPhase::running);
}

TEST(JobState, RefusesAJoinOfAnotherProcessThanTheOneThatWasStarted) {
  JobState job({.num_workers = 2, .timeout_s = 5});
  job.started(0, 100);
  EXPECT_TRUE(job.refuse_join(0, 101).has_value());
  EXPECT_FALSE(job.refuse_join(0, 100).has_value());
  EXPECT_FALSE(job.refuse_join(1, 102).has_value());  // the message with its pid hasn't arrived yet
  JobState wrapped({.num_workers = 2, .any_process_joins = true});
  wrapped.started(0, 100);
  EXPECT_FALSE(wrapped.refuse_join(0, 101).has_value());  // a wrapper may have started the process
}

TEST(JobState, BeginsWithTheDeadlineToGather) {
  EXPECT_EQ(words(JobState({.num_workers = 2}).begin()), "gather");
}

/// Loops get their state from the chips, or from a checkpoint if no chip keeps state.
TEST(JobState, SaysWhichCheckpointTheLoopsLoad) {
  const auto start = [](JobState job, std::uint64_t committed) {
    return std::get<Start>(job.joined(0, 10, committed).at(1));
  };
  const WholeCheckpoint first{.step = 8, .path = "there", .is_saved = true};
  const Start resumed = start(JobState({.resume = first}), 0);
  EXPECT_EQ(resumed.step, 8U);
  EXPECT_EQ(resumed.resume, "there");
  EXPECT_EQ(resumed.checkpoint, "");
  const Start later = start(JobState({.resume = first}), 9);
  EXPECT_EQ(later.step, 9U);
  EXPECT_EQ(later.resume, "") << "the chips have it";

  JobState forgetful({.keeps_state = false});
  EXPECT_EQ(start(forgetful, 20).step, 0U) << "no checkpoint is whole yet";
  forgetful.reported({.worker = 0, .step = 16, .checkpoint = "at 16"});
  const Start reported = start(forgetful, 20);
  EXPECT_EQ(reported.step, 16U);
  EXPECT_EQ(reported.checkpoint, "at 16");
  EXPECT_EQ(reported.resume, "");
  EXPECT_EQ(reported.reports, 1U);
}

TEST(JobState, TakesEachReportOfEachWorkerOnce) {
  JobState job = joined(2);
  for (const int worker : {1, 0}) {
    EXPECT_TRUE(job.reported({.worker = worker, .step = 1}));
    EXPECT_FALSE(job.reported({.worker = worker, .step = 1})) << "the same again";
  }
}

TEST(JobState, AWorkerThatCannotRunTheLoopFailsTheJobBeforeTheOthersJoin) {
  JobState job({.num_workers = 2, .timeout_s = 5});
  job.joined(0, 100, 0);
  job.loop_ended({.worker = 1, .generation = 0, .error = 1, .message = "never joined"}, 0);
  EXPECT_FALSE(job.over());
  job.loop_ended({.worker = 0, .generation = 0, .error = 1, .message = "no loop"}, 0);
  ASSERT_TRUE(job.over());
  EXPECT_EQ(job.failure()->message, "no loop");
}

TEST(JobState, TheLastWorkerToJoinMayBeUnableToRunTheLoopToo) {
  JobState job({.num_workers = 1, .timeout_s = 5});
  job.joined(0, 100, 0);
  EXPECT_EQ(job.phase(), JobPhase::running);
  job.loop_ended({.worker = 0, .generation = 0, .error = 1, .message = "no loop"}, 0);
  ASSERT_TRUE(job.over());
  EXPECT_EQ(job.failure()->message, "no loop");
}

TEST(JobState, RefusesAJoinThatIsOutOfRangeOrSecondOrLate) {
  JobState job({.num_workers = 2, .timeout_s = 5});
  EXPECT_NE(job.refuse_join(2, 12)->find("workers 0 to 1"), std::string::npos);
  EXPECT_TRUE(job.refuse_join(-1, 9));
  EXPECT_FALSE(job.refuse_join(0, 10));
  job.joined(0, 10, 0);
  EXPECT_NE(job.refuse_join(0, 20)->find("joined already"), std::string::npos);
  job.cancel(Errc::cancelled, "enough");
  EXPECT_TRUE(job.refuse_join(1, 11));
}

TEST(JobState, RefusesTheJoinOfAProcessThatHasEnded) {
  JobState job({.num_workers = 2, .recovery = {.max_failures = 1}, .timeout_s = 5});
  for (int w = 0; w < 2; ++w) job.started(w, 10 + w);
  job.joined(0, 10, 0);
  // The message `join` was still on its way when the worker's process was killed.
  EXPECT_EQ(words(job.process_ended({.worker = 1, .signal = 9}, {}, 0)), "launch 1");
  EXPECT_NE(job.refuse_join(1, 11)->find("has ended"), std::string::npos);
  job.started(1, 21);
  EXPECT_TRUE(job.refuse_join(1, 11));
  EXPECT_FALSE(job.refuse_join(1, 21));
  EXPECT_EQ(words(job.joined(1, 21, 0)), "prepare at 0, start at 0, grant 64");
}

/// Workers on two hosts may have processes with the same pid, so a pid alone names no process.
TEST(JobState, TellsProcessesOfTheSamePidApartByTheirWorkers) {
  JobState job({.num_workers = 2, .recovery = {.max_failures = 1}, .timeout_s = 5});
  job.started(1, 10);
  EXPECT_EQ(words(job.process_ended({.worker = 1, .signal = 9}, {}, 0)), "launch 1");
  job.started(0, 10);
  EXPECT_NE(job.refuse_join(1, 10)->find("worker 1 (pid 10) has ended"), std::string::npos);
  EXPECT_FALSE(job.refuse_join(0, 10)) << "the process of worker 1 has ended, not this one";
  EXPECT_EQ(words(job.joined(0, 10, 0)), "");
  job.started(1, 10);
  EXPECT_FALSE(job.refuse_join(1, 10)) << "another process has the pid now";
  EXPECT_EQ(words(job.joined(1, 10, 0)), "prepare at 0, start at 0, grant 64");
}

/// Worker 0 joins after worker 1's process, which had the same pid, has ended.
TEST(JobState, LetsAWorkerJoinWhoseEndedPeerHadItsPid) {
  JobState job({.num_workers = 2, .recovery = {.max_failures = 1}, .timeout_s = 5});
  for (int w = 0; w < 2; ++w) job.started(w, 10);
  job.process_ended({.worker = 1, .signal = 9}, {}, 0);
  EXPECT_FALSE(job.refuse_join(0, 10));
}

TEST(JobState, AdmitsAProgramOnlyWhenAllHaveShownIt) {
  JobState job = joined(3);
  const Actions asked = job.program(seen(2, 7, "x"));
  ASSERT_EQ(words(asked), "asked by 2 for 0 in run 1");
  EXPECT_TRUE(job.program(seen(0, 7, "x")).empty());
  const Actions actions = job.program(seen(1, 7, "x"));
  ASSERT_EQ(words(actions), "admit 1");
}

TEST(JobState, NamesTheFirstLineOfADivergingProgram) {
  JobState job = joined(2);
  job.program(seen(0, 7, "a\n  %2 = add  // train.cpp:4\nc"));
  const Actions actions = job.program(seen(1, 8, "a\n  %2 = subtract  // train.cpp:6\nc"));
  ASSERT_EQ(words(actions), "cancel");
  const Failure& failure = *job.failure();
  EXPECT_EQ(failure.code, Errc::program_divergence);
  EXPECT_NE(failure.message.find("the first line that differs is 2"), std::string::npos);
  EXPECT_NE(failure.message.find("train.cpp:4"), std::string::npos);
  EXPECT_NE(failure.message.find("train.cpp:6"), std::string::npos);
}

/// Inputs are numbered by first use, so an op that differs may also change the inputs after it.
TEST(JobState, NamesTheOpThatDivergesRatherThanAnInputThatFollowsIt) {
  JobState job = joined(2);
  job.program(seen(0, 7, "  %1: f32 param \"w\"\n  %0 = iota  // train.cpp:4"));
  job.program(seen(1, 8, "  %2: f32 param \"w\"\n  %0 = constant  // train.cpp:6"));
  EXPECT_NE(job.failure()->message.find("train.cpp:6"), std::string::npos);
}

TEST(JobState, GrowsLeasesAndNeverShrinksThem) {
  JobState job({.num_workers = 1, .lease_steps = 10, .timeout_s = 5});
  const Actions start = job.joined(0, 1, 0);
  EXPECT_EQ(words(start), "prepare at 0, start at 0, grant 10");
  const Actions more = job.lease_wanted(5);
  ASSERT_EQ(words(more), "grant 15");
  EXPECT_TRUE(job.lease_wanted(3).empty());
}

TEST(JobState, SucceedsWhenAllLoopsEndAfterTheSameRuns) {
  JobState job = joined(2);
  EXPECT_EQ(words(job.loop_ended({.worker = 1, .step = 4, .runs = 9}, 0)), "1 ended after 9");
  EXPECT_EQ(words(job.loop_ended({.worker = 0, .step = 4, .runs = 9}, 0)), "0 ended after 9, stop");
  EXPECT_EQ(job.phase(), JobPhase::succeeded);
  EXPECT_TRUE(job.process_ended({.worker = 0}, {}, 0).empty());
  EXPECT_FALSE(job.failure());
}

TEST(JobState, ALoopThatEndsAfterFewerRunsIsNamed) {
  JobState job = joined(2);
  job.loop_ended({.worker = 1, .step = 4, .runs = 9}, 0);
  EXPECT_EQ(words(job.loop_ended({.worker = 0, .step = 5, .runs = 10}, 0)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::uneven_loops);
  EXPECT_EQ(job.failure()->worker, 1);
  EXPECT_EQ(job.failure()->step, 4U);
}

TEST(JobState, ALoopThatEndsLaterDoesNotTakeTheBlameOfOneThatEndedEarlier) {
  JobState job = joined(2);
  job.loop_ended({.worker = 0, .step = 5, .runs = 10}, 0);
  job.loop_ended({.worker = 1, .step = 4, .runs = 9}, 0);
  EXPECT_EQ(job.failure()->worker, 1);
}

TEST(JobState, AWorkerThatFindsAnotherLoopEndedIsNotToBlame) {
  JobState job = joined(3);
  job.loop_ended({.worker = 2, .step = 4, .runs = 9}, 0);
  EXPECT_EQ(words(job.loop_ended({.worker = 0,
                                  .step = 5,
                                  .runs = 9,
                                  .error = static_cast<std::uint8_t>(Errc::uneven_loops),
                                  .message = "worker 2 ended its loop after 9 programs"},
                                 0)),
            "cancel");
  EXPECT_EQ(job.failure()->worker, 2);
  EXPECT_EQ(job.failure()->message,
            "worker 0 (pid 100) failed at step 5: worker 2 ended its loop after 9 programs");
}

TEST(JobState, NamesWorkerPidSignalStepAndCollectiveOfALoss) {
  JobState job = joined(3);
  const Actions actions =
      job.process_ended({.worker = 2, .signal = 9},
                        {.step = 204, .collective = "all_reduce #812 'fc1.weight.grad'"}, 0);
  ASSERT_EQ(words(actions), "cancel");
  EXPECT_EQ(std::get<action::Cancel>(actions[0]).why,
            "worker 2 (pid 102) was killed by signal 9 (SIGKILL) at step 204, in all_reduce #812 "
            "'fc1.weight.grad'");
  EXPECT_EQ(job.failure()->signal, 9);
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
}

TEST(JobState, SaysThatTheKernelHadNoMemory) {
  const auto message = [](const ProcessEnded& ended) {
    JobState job = joined(3);
    job.process_ended(ended, {.step = 7}, 0);
    return job.failure()->message;
  };
  const std::string word = "because memory ran out";
  EXPECT_NE(message({.worker = 2, .signal = 9, .out_of_memory = true}).find(word), word.npos);
  EXPECT_EQ(message({.worker = 2, .signal = 9}).find(word), word.npos);
  EXPECT_EQ(message({.worker = 2, .signal = 11, .out_of_memory = true}).find(word), word.npos);
}

TEST(JobState, KeepsTheFirstCause) {
  JobState job = joined(2);
  job.process_ended({.worker = 1, .signal = 11}, {}, 0);
  EXPECT_TRUE(job.loop_ended({.worker = 0,
                              .error = static_cast<std::uint8_t>(Errc::peer_lost),
                              .message = "another"},
                             0)
                  .empty());
  EXPECT_TRUE(job.process_ended({.worker = 0, .exit_code = 1}, {}, 0).empty());
  EXPECT_EQ(job.failure()->worker, 1);
}

TEST(JobState, AnExitInTheMiddleOfTheLoopIsALossWhateverItsCode) {
  JobState job = joined(2);
  job.process_ended({.worker = 0, .exit_code = 0}, {.step = 3, .collective = {}}, 0);
  EXPECT_EQ(job.failure()->message, "worker 0 (pid 100) exited with code 0 at step 3");
}

TEST(JobState, NamesAllThatHaveNotJoinedInTime) {
  JobState job({.num_workers = 3, .timeout_s = 5});
  for (int w = 0; w < 3; ++w) job.started(w, 100 + w);
  job.joined(1, 101, 0);
  EXPECT_EQ(words(job.gather_deadline(1)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::timeout);
  EXPECT_NE(job.failure()->message.find(
                "worker 0 (pid 100) has not joined, worker 2 (pid 102) has not joined"),
            std::string::npos);
}

TEST(JobState, TheDeadlineMeansNothingOnceAllHaveJoined) {
  JobState job = joined(2);
  EXPECT_TRUE(job.gather_deadline(1).empty());
}

TEST(JobState, ABrokenLinkCountsOnlyWhileTheProcessLives) {
  JobState job = joined(2);
  EXPECT_EQ(words(job.link_down(1)), "link grace 1 #2");
  EXPECT_EQ(words(job.link_grace_over(1, 2, {}, 0)), "cancel");
  EXPECT_EQ(words(job.link_down(0)), "") << "the job is over";
  JobState other = joined(2);
  other.loop_ended({.worker = 1, .step = 1, .runs = 1}, 0);
  EXPECT_EQ(words(other.link_down(1)), "link grace 1 #2");
  EXPECT_TRUE(other.link_grace_over(1, 2, {}, 0).empty());
}

TEST(JobState, AProcessIsStartedAgainWhenTheLinkToTheOneBeforeHasEnded) {
  JobState first({.num_workers = 1, .recovery = {.max_failures = -1}, .timeout_s = 5});
  first.joined(0, 100, 0);
  EXPECT_EQ(words(first.process_ended({.worker = 0, .signal = 9}, {}, 0)),
            "unwind, gather, link grace 0 #2");
  EXPECT_EQ(words(first.link_down(0)), "launch 0");
  EXPECT_EQ(words(first.link_grace_over(0, 2, {}, 0)), "") << "it has been launched";

  JobState second({.num_workers = 1, .recovery = {.max_failures = -1}, .timeout_s = 5});
  second.joined(0, 100, 0);
  EXPECT_EQ(words(second.link_down(0)), "link grace 0 #2");
  EXPECT_EQ(words(second.process_ended({.worker = 0, .signal = 9}, {}, 0)),
            "unwind, gather, launch 0");
  EXPECT_EQ(words(second.link_grace_over(0, 2, {}, 0)), "") << "the process was seen to end";
}

/// A link may outlive its worker if the worker has forked a process that keeps the link open.
TEST(JobState, ALinkThatOutlivesItsProcessIsNotWaitedForLong) {
  JobState job({.num_workers = 1, .recovery = {.max_failures = -1}, .timeout_s = 5});
  job.joined(0, 100, 0);
  job.process_ended({.worker = 0, .signal = 9}, {}, 0);
  EXPECT_EQ(words(job.link_grace_over(0, 1, {}, 0)), "") << "of another time";
  EXPECT_EQ(words(job.link_grace_over(0, 2, {}, 0)), "launch 0");
  job.started(0, 200);
  EXPECT_EQ(words(job.joined(0, 200, 0)), "prepare at 0, start at 0, grant 64");
  EXPECT_EQ(words(job.link_grace_over(0, 2, {}, 0)), "");
}

}  // namespace
}  // namespace weft::job_state_test
