#include "actors/supervision/job_state.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Kind = Action::Kind;

JobState joined(int workers) {
  JobState job(workers);
  for (int w = 0; w < workers; ++w) {
    job.started(w, 100 + w);
    job.joined(w, 100 + w);
  }
  return job;
}

std::vector<Kind> kinds(const Actions& actions) {
  std::vector<Kind> result;
  for (const Action& action : actions) result.push_back(action.kind);
  return result;
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
  JobState job(2);
  EXPECT_TRUE(job.joined(1, 11).empty());
  EXPECT_EQ(kinds(job.joined(0, 10)), (std::vector{Kind::start, Kind::grant}));
  EXPECT_EQ(job.phase(), JobPhase::running);
}

TEST(JobState, RefusesAJoinOfAnotherProcessThanTheOneThatWasStarted) {
  JobState job(2);
  job.started(0, 100);
  EXPECT_TRUE(job.refuse_join(0, 101).has_value());
  EXPECT_FALSE(job.refuse_join(0).has_value());  // a debugger may have started it
  EXPECT_FALSE(job.refuse_join(0, 100).has_value());
  EXPECT_FALSE(job.refuse_join(1, 102).has_value());  // its start hasn't been told yet
}

TEST(JobState, AWorkerThatCannotRunTheLoopFailsTheJobBeforeTheOthersJoin) {
  JobState job(2);
  job.joined(0, 100);
  job.loop_ended({.worker = 1, .generation = 0, .error = 1, .message = "never joined"});
  EXPECT_FALSE(job.over());
  job.loop_ended({.worker = 0, .generation = 0, .error = 1, .message = "no loop"});
  ASSERT_TRUE(job.over());
  EXPECT_EQ(job.failure()->message, "no loop");
}

TEST(JobState, TheLastWorkerToJoinMayBeUnableToRunTheLoopToo) {
  JobState job(1);
  job.joined(0, 100);
  EXPECT_EQ(job.phase(), JobPhase::running);
  job.loop_ended({.worker = 0, .generation = 0, .error = 1, .message = "no loop"});
  ASSERT_TRUE(job.over());
  EXPECT_EQ(job.failure()->message, "no loop");
}

TEST(JobState, RefusesAJoinThatIsOutOfRangeOrSecondOrLate) {
  JobState job(2);
  EXPECT_NE(job.refuse_join(2, 12)->find("workers 0 to 1"), std::string::npos);
  EXPECT_TRUE(job.refuse_join(-1, 9));
  EXPECT_FALSE(job.refuse_join(0, 10));
  job.joined(0, 10);
  EXPECT_NE(job.refuse_join(0, 20)->find("joined already"), std::string::npos);
  job.cancel(Errc::cancelled, "enough");
  EXPECT_TRUE(job.refuse_join(1, 11));
}

TEST(JobState, RefusesTheJoinOfAProcessThatHasEnded) {
  JobState job(2, {.max_failures = 1});
  for (int w = 0; w < 2; ++w) job.started(w, 10 + w);
  job.joined(0, 10);
  // The join was on its way when the process was killed.
  EXPECT_EQ(kinds(job.process_ended({.worker = 1, .signal = 9}, {})), std::vector{Kind::restart});
  EXPECT_NE(job.refuse_join(1, 11)->find("has ended"), std::string::npos);
  job.started(1, 21);
  EXPECT_TRUE(job.refuse_join(1, 11));
  EXPECT_FALSE(job.refuse_join(1, 21));
  EXPECT_EQ(kinds(job.joined(1, 21)), (std::vector{Kind::start, Kind::grant}));
}

TEST(JobState, AdmitsAProgramOnlyWhenAllHaveShownIt) {
  JobState job = joined(3);
  const Actions asked = job.program(seen(2, 7, "x"));
  ASSERT_EQ(kinds(asked), std::vector{Kind::asked});
  EXPECT_EQ(asked[0].worker, 2);
  EXPECT_TRUE(job.program(seen(0, 7, "x")).empty());
  const Actions actions = job.program(seen(1, 7, "x"));
  ASSERT_EQ(kinds(actions), std::vector{Kind::admit});
  EXPECT_EQ(actions[0].number, 1U);
}

TEST(JobState, NamesTheFirstLineOfADivergingProgram) {
  JobState job = joined(2);
  job.program(seen(0, 7, "a\n  %2 = add  // train.cpp:4\nc"));
  const Actions actions = job.program(seen(1, 8, "a\n  %2 = subtract  // train.cpp:6\nc"));
  ASSERT_EQ(kinds(actions), std::vector{Kind::cancel});
  const Failure& failure = *job.failure();
  EXPECT_EQ(failure.code, Errc::program_divergence);
  EXPECT_NE(failure.message.find("the first line that differs is 2"), std::string::npos);
  EXPECT_NE(failure.message.find("train.cpp:4"), std::string::npos);
  EXPECT_NE(failure.message.find("train.cpp:6"), std::string::npos);
}

/// The numbers of inputs follow from where they are used first.
TEST(JobState, NamesTheOpThatDivergesRatherThanAnInputThatFollowsIt) {
  JobState job = joined(2);
  job.program(seen(0, 7, "  %1: f32 param \"w\"\n  %0 = iota  // train.cpp:4"));
  job.program(seen(1, 8, "  %2: f32 param \"w\"\n  %0 = constant  // train.cpp:6"));
  EXPECT_NE(job.failure()->message.find("train.cpp:6"), std::string::npos);
}

TEST(JobState, GrowsLeasesAndNeverShrinksThem) {
  JobState job(1, {}, 10);
  const Actions start = job.joined(0, 1);
  EXPECT_EQ(start[1].number, 10U);
  const Actions more = job.lease_wanted(5);
  ASSERT_EQ(kinds(more), std::vector{Kind::grant});
  EXPECT_EQ(more[0].number, 15U);
  EXPECT_TRUE(job.lease_wanted(3).empty());
}

TEST(JobState, SucceedsWhenAllLoopsEndAfterTheSameRuns) {
  JobState job = joined(2);
  EXPECT_EQ(kinds(job.loop_ended({.worker = 1, .step = 4, .runs = 9})),
            std::vector{Kind::loop_ended});
  EXPECT_EQ(kinds(job.loop_ended({.worker = 0, .step = 4, .runs = 9})),
            (std::vector{Kind::loop_ended, Kind::stop}));
  EXPECT_EQ(job.phase(), JobPhase::succeeded);
  EXPECT_TRUE(job.process_ended({.worker = 0}, {}).empty());
  EXPECT_FALSE(job.failure());
}

TEST(JobState, ALoopThatEndsAfterFewerRunsIsADivergence) {
  JobState job = joined(2);
  job.loop_ended({.worker = 1, .step = 4, .runs = 9});
  EXPECT_EQ(kinds(job.loop_ended({.worker = 0, .step = 5, .runs = 10})), std::vector{Kind::cancel});
  EXPECT_EQ(job.failure()->code, Errc::program_divergence);
}

TEST(JobState, NamesWorkerPidSignalStepAndCollectiveOfALoss) {
  JobState job = joined(3);
  const Actions actions = job.process_ended(
      {.worker = 2, .signal = 9}, {.step = 204, .collective = "all_reduce #812 'fc1.weight.grad'"});
  ASSERT_EQ(kinds(actions), std::vector{Kind::cancel});
  EXPECT_EQ(actions[0].text,
            "worker 2 (pid 102) was killed by signal 9 (SIGKILL) at step 204, in all_reduce #812 "
            "'fc1.weight.grad'");
  EXPECT_EQ(job.failure()->signal, 9);
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
}

TEST(JobState, SaysThatTheKernelHadNoMemory) {
  const auto message = [](const ProcessEnded& ended) {
    JobState job = joined(3);
    job.process_ended(ended, {.step = 7});
    return job.failure()->message;
  };
  const std::string word = "for want of memory";
  EXPECT_NE(message({.worker = 2, .signal = 9, .out_of_memory = true}).find(word), word.npos);
  EXPECT_EQ(message({.worker = 2, .signal = 9}).find(word), word.npos);
  EXPECT_EQ(message({.worker = 2, .signal = 11, .out_of_memory = true}).find(word), word.npos);
}

TEST(JobState, KeepsTheFirstCause) {
  JobState job = joined(2);
  job.process_ended({.worker = 1, .signal = 11}, {});
  EXPECT_TRUE(job.loop_ended({.worker = 0,
                              .error = static_cast<std::uint8_t>(Errc::peer_lost),
                              .message = "another"})
                  .empty());
  EXPECT_TRUE(job.process_ended({.worker = 0, .exit_code = 1}, {}).empty());
  EXPECT_EQ(job.failure()->worker, 1);
}

TEST(JobState, AnExitInTheMiddleOfTheLoopIsALossWhateverItsCode) {
  JobState job = joined(2);
  job.process_ended({.worker = 0, .exit_code = 0}, {.step = 3, .collective = {}});
  EXPECT_EQ(job.failure()->message, "worker 0 (pid 100) exited with code 0 at step 3");
}

TEST(JobState, NamesAllThatHaveNotJoinedInTime) {
  JobState job(3);
  for (int w = 0; w < 3; ++w) job.started(w, 100 + w);
  job.joined(1, 101);
  EXPECT_EQ(kinds(job.gather_deadline(1, 5)), std::vector{Kind::cancel});
  EXPECT_EQ(job.failure()->code, Errc::timeout);
  EXPECT_NE(job.failure()->message.find(
                "worker 0 (pid 100) has not joined, worker 2 (pid 102) has not joined"),
            std::string::npos);
}

TEST(JobState, TheDeadlineMeansNothingOnceAllHaveJoined) {
  JobState job = joined(2);
  EXPECT_TRUE(job.gather_deadline(1, 5).empty());
}

TEST(JobState, ABrokenLinkCountsOnlyWhileTheProcessLives) {
  JobState job = joined(2);
  EXPECT_EQ(kinds(job.link_lost(1, {})), std::vector{Kind::cancel});
  JobState other = joined(2);
  other.loop_ended({.worker = 1, .step = 1, .runs = 1});
  EXPECT_TRUE(other.link_lost(1, {}).empty());
}

}  // namespace
}  // namespace weft
