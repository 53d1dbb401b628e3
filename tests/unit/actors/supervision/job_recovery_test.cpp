/// Tests JobState in jobs that continue after workers die.

#include <gtest/gtest.h>

#include "actors/supervision/job_state.hpp"
#include "tests/support/action_text.hpp"

namespace weft::job_recovery_test {
namespace {

constexpr RecoveryPolicy kAnyNumber{.max_failures = -1, .backoff_ms = 500};
constexpr RecoveryPolicy kGroup{.max_failures = -1, .restart = Restart::group};

/// Prints actions as "unwind, gather, kill 1, restart 2". "restart" means that a process starts at
/// once, or when the link of the previous one has ended.
std::string words(const Actions& actions) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty()) text += ", ";
    text += std::visit(
        Overloaded{
            [](const action::Launch& launch) { return fmt::format("restart {}", launch.worker); },
            [](const action::LinkGrace& grace) { return fmt::format("restart {}", grace.worker); },
            [&](const auto&) { return testing::words(action); },
        },
        action);
  }
  return text;
}

class JobRecoveryTest : public ::testing::Test {
 protected:
  JobState running(RecoveryPolicy policy = kAnyNumber) {
    JobState job({.num_workers = 3, .recovery = policy, .lease_steps = 10, .timeout_s = 5});
    for (int worker = 0; worker < 3; ++worker) job.started(worker, 100 + worker);
    for (int worker = 0; worker < 3; ++worker) job.joined(worker, 100 + worker, 0);
    EXPECT_EQ(job.phase(), JobPhase::running);
    return job;
  }
  /// Returns a job whose worker 1 died at step 7. The other workers are still in their loops.
  JobState unwinding() {
    JobState job = running();
    job.process_ended(killed(1), {.step = 8}, 7);
    return job;
  }
  /// Breaks a worker's link, and lets the time pass in which its process may end.
  static Actions link_lost(JobState& job, int worker) {
    const Actions actions = job.link_down(worker);
    if (actions.empty()) return {};
    const auto* grace = std::get_if<action::LinkGrace>(&actions[0]);
    if (grace == nullptr) return actions;
    return job.link_grace_over(worker, grace->number, {.step = 8}, 7);
  }
  static ProcessEnded killed(int worker) { return {.worker = worker, .signal = 9}; }
  static LoopEnded failed(int worker, Errc code, std::uint64_t generation = 1) {
    return {.worker = worker,
            .generation = generation,
            .step = 8,
            .runs = 9,
            .error = static_cast<std::uint8_t>(code),
            .message = "what() says"};
  }
  static LoopEnded ended(int worker, std::uint64_t generation = 1) {
    return {.worker = worker, .generation = generation, .step = 9, .runs = 9};
  }
};

TEST_F(JobRecoveryTest, AKilledWorkerEndsTheGenerationAndIsStartedAgain) {
  JobState job = running();
  const Actions actions = job.process_ended(killed(1), {.step = 8}, 7);
  EXPECT_EQ(words(actions), "unwind, gather, restart 1");
  EXPECT_EQ(std::get<action::Unwind>(actions[0]).why,
            "worker 1 (pid 101) was killed by signal 9 (SIGKILL) at step 8");
  EXPECT_EQ(job.phase(), JobPhase::gathering);
  EXPECT_EQ(job.generation(), 2U);
  EXPECT_FALSE(job.failure());
  ASSERT_EQ(job.recovery().failures().size(), 1U);
  EXPECT_EQ(job.recovery().failures()[0].signal, 9);
}

/// Worker 2's disk is full. The save fails in all loops, and worker 0's loop is the first to throw.
TEST_F(JobRecoveryTest, BlamesTheWorkerThatCouldNotWriteItsPartOfASave) {
  JobState job = running({.max_failures = 0});
  for (const int worker : {2, 0, 1}) {
    PartWritten part{.worker = worker, .step = 7, .save = 7};
    if (worker == 2) {
      part.error = static_cast<std::uint8_t>(Errc::no_space);
      part.message = "disk full";
    }
    job.checkpoints().part_written(part);
  }
  LoopEnded thrown = failed(0, Errc::no_space);
  thrown.message = "worker 2: disk full";
  job.loop_ended(thrown, 7);
  ASSERT_TRUE(job.failure());
  EXPECT_EQ(job.failure()->worker, 2);
  EXPECT_EQ(job.failure()->pid, 102);
  EXPECT_NE(job.failure()->message.find("worker 2: disk full"), std::string::npos);
}

TEST_F(JobRecoveryTest, GoesOnAtTheCommonStepOnceAllAreThere) {
  JobState job = unwinding();
  EXPECT_EQ(words(job.unwound(0, 2, 7)), "");
  job.started(1, 201);
  EXPECT_FALSE(job.refuse_join(1, 201));
  EXPECT_EQ(words(job.joined(1, 201, 7)), "") << "worker 2 is still in its loop";
  EXPECT_EQ(words(job.unwound(2, 2, 8)), "prepare at 8, start at 8, grant 18");
  EXPECT_EQ(job.phase(), JobPhase::running);
  EXPECT_EQ(job.generation(), 2U);
}

TEST_F(JobRecoveryTest, TheLastOfAllMayBeTheOneThatWasLost) {
  JobState job = unwinding();
  job.unwound(0, 2, 7);
  job.unwound(2, 2, 7);
  EXPECT_EQ(words(job.joined(1, 201, 7)), "prepare at 7, start at 7, grant 17");
}

TEST_F(JobRecoveryTest, TheOthersHaveJoinedAlready) {
  const JobState job = unwinding();
  EXPECT_TRUE(job.refuse_join(0, 900));
  EXPECT_TRUE(job.refuse_join(2, 900));
  EXPECT_FALSE(job.refuse_join(1, 201));
}

TEST_F(JobRecoveryTest, PassesOverWhatIsSaidOfAGenerationThatIsOver) {
  JobState job = unwinding();
  EXPECT_EQ(words(job.loop_ended(failed(0, Errc::peer_lost), 7)), "");
  EXPECT_EQ(words(job.loop_ended(ended(2), 7)), "");
  EXPECT_EQ(words(job.program({.worker = 0, .run = 1, .text = "x"})), "");
  EXPECT_EQ(words(job.lease_wanted(8)), "");
  EXPECT_EQ(words(job.unwound(0, 1, 7)), "");
  EXPECT_EQ(words(job.unwound(0, 3, 7)), "");
  EXPECT_EQ(words(job.unwound(1, 2, 7)), "") << "the lost one";
  EXPECT_EQ(words(job.gather_deadline(1)), "");
  job.unwound(0, 2, 7);
  job.unwound(2, 2, 7);
  job.joined(1, 201, 7);
  ASSERT_EQ(job.phase(), JobPhase::running);
  EXPECT_EQ(words(job.loop_ended(failed(0, Errc::peer_lost), 7)), "");
  EXPECT_EQ(words(job.loop_ended(ended(2), 7)), "");
  EXPECT_EQ(words(job.program({.worker = 0, .run = 1, .text = "x"})), "");
  EXPECT_EQ(words(job.unwound(0, 2, 7)), "");
  EXPECT_EQ(words(job.gather_deadline(2)), "");
  EXPECT_EQ(words(job.program({.worker = 0, .generation = 2, .run = 1, .text = "x"})),
            "asked by 0 for 0 in run 1");
}

TEST_F(JobRecoveryTest, AProgramIsShownAgainInEveryGeneration) {
  JobState job = running();
  job.program({.worker = 0, .run = 1, .fingerprint_low = 7});
  job.program({.worker = 1, .run = 1, .fingerprint_low = 7});
  job.process_ended(killed(1), {}, 0);
  job.unwound(0, 2, 0);
  job.unwound(2, 2, 0);
  job.joined(1, 201, 0);
  const auto seen = [](int worker) {
    return ProgramSeen{.worker = worker, .generation = 2, .run = 1, .fingerprint_low = 8};
  };
  EXPECT_EQ(words(job.program(seen(2))), "asked by 2 for 0 in run 1");
  EXPECT_EQ(words(job.program(seen(0))), "");
  EXPECT_EQ(words(job.program(seen(1))), "admit 1");
}

TEST_F(JobRecoveryTest, AWorkerThatIsLostWhileTheyGatherIsStartedAgainToo) {
  JobState job = unwinding();
  EXPECT_EQ(words(job.process_ended(killed(0), {}, 7)), "restart 0") << "in its loop";
  job.unwound(2, 2, 7);
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 7)), "restart 2") << "out of it";
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)), "back off 1 for 500 ms")
      << "before it came";
  EXPECT_EQ(words(job.restart_due(1)), "restart 1");
  EXPECT_EQ(job.recovery().failures().back().message,
            "worker 1 (pid 101) was killed by signal 9 (SIGKILL) before it joined");
  EXPECT_EQ(job.generation(), 2U) << "which hasn't begun";
  for (const int worker : {0, 1}) EXPECT_EQ(words(job.joined(worker, 300, 7)), "");
  EXPECT_EQ(words(job.joined(2, 300, 7)), "prepare at 7, start at 7, grant 17");
  EXPECT_EQ(job.recovery().failures().size(), 4U);
}

TEST_F(JobRecoveryTest, ALossBeforeTheFirstGenerationEndsNone) {
  JobState job({.num_workers = 2, .recovery = kAnyNumber, .timeout_s = 5});
  job.joined(0, 100, 0);
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 0)), "restart 1");
  EXPECT_EQ(job.generation(), 1U);
  EXPECT_EQ(words(job.joined(1, 201, 0)), "prepare at 0, start at 0, grant 64");
}

TEST_F(JobRecoveryTest, WaitsLongerFromLossToLoss) {
  JobState job = unwinding();
  for (const std::uint64_t delay : {500U, 1000U}) {
    const Actions actions = job.process_ended(killed(1), {}, 7);
    EXPECT_EQ(words(actions), fmt::format("back off 1 for {} ms", delay));
    EXPECT_TRUE(job.refuse_join(1, 900)) << "nobody has been started";
    EXPECT_EQ(words(job.restart_due(0)), "");
    EXPECT_EQ(words(job.restart_due(1)), "restart 1");
    EXPECT_EQ(words(job.restart_due(1)), "");
  }
}

TEST_F(JobRecoveryTest, WorkersThatAreLostTogetherComeAgainAtOnceAndCountAsOne) {
  JobState job = running({.max_failures = 1, .backoff_ms = 500});
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 7)), "unwind, gather, restart 2");
  EXPECT_EQ(words(job.process_ended(killed(0), {}, 7)), "restart 0");
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)), "restart 1");
  EXPECT_EQ(job.recovery().failures().size(), 3U);
  EXPECT_EQ(job.recovery().incidents(), 1);
}

TEST_F(JobRecoveryTest, ALossAfterTheLoopsHaveBegunAgainIsTheNext) {
  JobState job = unwinding();
  job.unwound(0, 2, 7);
  job.unwound(2, 2, 7);
  job.joined(1, 201, 7);
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 7)), "unwind, gather, back off 2 for 500 ms")
      << "no step was taken";
  EXPECT_EQ(job.recovery().incidents(), 2);
}

TEST_F(JobRecoveryTest, AWorkerThatNeverJoinsAgainIsGivenUp) {
  JobState job = unwinding();
  for (int start = 1; start < 10; ++start) {
    const std::string back_off = words(job.process_ended({.worker = 1, .exit_code = 3}, {}, 7));
    EXPECT_TRUE(back_off.starts_with("back off 1 for ")) << back_off;
    job.restart_due(1);
  }
  EXPECT_EQ(words(job.process_ended({.worker = 1, .exit_code = 3}, {}, 7)), "cancel");
  EXPECT_EQ(job.failure()->code, Errc::peer_lost);
  EXPECT_EQ(job.failure()->message,
            "worker 1 (pid 101) exited with code 3 before it joined; 10 of its processes in a "
            "row ended like this, so the worker is not started again: code before fit() in "
            "main() runs in every worker too");
}

TEST_F(JobRecoveryTest, AWorkerThatJoinsNowAndThenIsNotGivenUp) {
  JobState job = unwinding();
  for (int start = 0; start < 20; ++start) {
    if (start % 9 == 8) job.joined(1, 300 + start, 7);
    EXPECT_NE(words(job.process_ended(killed(1), {}, 7)), "cancel") << start;
    job.restart_due(1);
  }
  EXPECT_FALSE(job.over());
}

TEST_F(JobRecoveryTest, TheLossAfterTheNextGenerationEndsThatOne) {
  JobState job = unwinding();
  job.unwound(0, 2, 7);
  job.unwound(2, 2, 7);
  job.joined(1, 201, 7);
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 9)), "unwind, gather, restart 2");
  EXPECT_EQ(job.generation(), 3U);
  EXPECT_EQ(words(job.unwound(0, 2, 9)), "");
  job.unwound(0, 3, 9);
  job.unwound(1, 3, 9);
  EXPECT_EQ(words(job.joined(2, 202, 9)), "prepare at 9, start at 9, grant 19");
}

TEST_F(JobRecoveryTest, AWorkerWhoseLoopFailedIsKilledFirst) {
  JobState job = running();
  EXPECT_EQ(words(job.loop_ended(failed(1, Errc::loop_failed), 7)), "unwind, gather, kill 1");
  EXPECT_EQ(job.recovery().failures().at(0).message,
            "worker 1 (pid 101) failed at step 8: what() says");
  EXPECT_TRUE(job.refuse_join(1, 900)) << "its process is still there";
  EXPECT_EQ(words(link_lost(job, 1)), "") << "nothing new";
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)), "restart 1");
  EXPECT_EQ(job.recovery().failures().size(), 1U);
  EXPECT_FALSE(job.refuse_join(1, 201));
}

TEST_F(JobRecoveryTest, TheWorkerThatATimeoutWaitedForIsTheLostOne) {
  JobState job = running();
  EXPECT_EQ(
      words(job.loop_ended(failed(0, Errc::timeout), 7, Missing{.worker = 2, .how = "is stopped"})),
      "unwind, gather, kill 2");
  EXPECT_EQ(job.recovery().failures().at(0).message,
            "worker 2 (pid 102) did not arrive, it is stopped: what() says");
  job.unwound(0, 2, 7);
  job.unwound(1, 2, 7);
  job.process_ended(killed(2), {}, 7);
  EXPECT_EQ(words(job.joined(2, 202, 7)), "prepare at 7, start at 7, grant 17");
}

TEST_F(JobRecoveryTest, AGroupIsStartedAgainAsAWhole) {
  JobState job = running(kGroup);
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)),
            "unwind, gather, kill 0, restart 1, kill 2");
  EXPECT_EQ(words(job.unwound(0, 2, 7)), "") << "too late for that";
  EXPECT_EQ(words(job.process_ended(killed(0), {}, 7)), "restart 0");
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 7)), "restart 2");
  EXPECT_EQ(job.recovery().failures().size(), 1U);
  job.joined(0, 200, 7);
  job.joined(1, 201, 7);
  EXPECT_EQ(words(job.joined(2, 202, 7)), "prepare at 7, start at 7, grant 17");
}

TEST_F(JobRecoveryTest, AGroupKillsTheOneWhoseLoopFailedToo) {
  JobState job = running(kGroup);
  EXPECT_EQ(words(job.loop_ended(failed(1, Errc::loop_failed), 7)),
            "unwind, gather, kill 0, kill 1, kill 2");
}

TEST_F(JobRecoveryTest, AGroupKillsNobodyTwice) {
  JobState job = running(kGroup);
  job.process_ended(killed(1), {}, 7);
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)), "restart 1") << "again, before it joined";
}

TEST_F(JobRecoveryTest, AWorkerWhoseLoopEndedWellComesAgainForALossOfAnother) {
  JobState job = running();
  job.loop_ended(ended(0), 9);
  EXPECT_EQ(words(job.process_ended({.worker = 0}, {}, 9)), "") << "no loss";
  job.loop_ended(ended(2), 9);
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 9)), "unwind, gather, restart 0, restart 1");
  EXPECT_FALSE(job.refuse_join(0, 900));
  EXPECT_EQ(words(job.unwound(2, 2, 9)), "") << "its process waited for the others' end";
  EXPECT_EQ(words(job.joined(0, 200, 9)), "");
  EXPECT_EQ(words(job.joined(1, 201, 9)), "prepare at 9, start at 9, grant 19");
  EXPECT_EQ(words(job.loop_ended(ended(1, 2), 9)), "1 ended after 9")
      << "the ends of the generation before don't count";
  EXPECT_EQ(job.phase(), JobPhase::running);
  job.loop_ended(ended(0, 2), 9);
  EXPECT_EQ(words(job.loop_ended(ended(2, 2), 9)), "2 ended after 9, stop");
  EXPECT_EQ(job.phase(), JobPhase::succeeded);
}

TEST_F(JobRecoveryTest, AWorkerWhoseLoopEndedWellIsLostAsAnyOtherOnceItIsNeededAgain) {
  JobState job = running();
  job.loop_ended(ended(2), 9);
  job.process_ended(killed(1), {}, 9);
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 9)), "restart 2");
  job.unwound(0, 2, 9);
  job.joined(1, 201, 9);
  EXPECT_EQ(words(job.joined(2, 202, 9)), "prepare at 9, start at 9, grant 19");
}

TEST_F(JobRecoveryTest, ADivergenceIsNeverSurvived) {
  JobState traced = running();
  traced.program({.worker = 0, .run = 1, .fingerprint_low = 7, .text = "a"});
  EXPECT_EQ(words(traced.program({.worker = 1, .run = 1, .fingerprint_low = 8, .text = "b"})),
            "cancel");
  JobState told = running();
  EXPECT_EQ(words(told.loop_ended(failed(1, Errc::program_divergence), 7)), "cancel");
  for (const JobState& job : {traced, told}) {
    EXPECT_EQ(job.failure()->code, Errc::program_divergence);
    EXPECT_TRUE(job.recovery().failures().empty());
  }
}

TEST_F(JobRecoveryTest, ALoopThatEndsBeforeTheOthersIsNeverSurvived) {
  JobState seen = running();
  seen.loop_ended(ended(0), 9);
  LoopEnded longer = ended(1);
  longer.runs = 10;
  EXPECT_EQ(words(seen.loop_ended(longer, 9)), "cancel");
  JobState told = running();
  EXPECT_EQ(words(told.loop_ended(failed(1, Errc::uneven_loops), 7)), "cancel");
  for (const JobState& job : {seen, told}) {
    EXPECT_EQ(job.failure()->code, Errc::uneven_loops);
    EXPECT_TRUE(job.recovery().failures().empty());
  }
}

TEST_F(JobRecoveryTest, SaysWhyAFailureIsNotSurvived) {
  JobState job = running({.max_failures = 1});
  job.process_ended(killed(1), {}, 7);
  job.unwound(0, 2, 7);
  job.unwound(2, 2, 7);
  job.joined(1, 201, 7);
  EXPECT_EQ(words(job.process_ended(killed(0), {.step = 8}, 7)), "cancel");
  EXPECT_EQ(job.failure()->message,
            "worker 0 (pid 100) was killed by signal 9 (SIGKILL) at step 8; "
            "run.failure.max_failures = 1 failures had happened before");
  EXPECT_EQ(job.recovery().failures().size(), 1U);
  EXPECT_TRUE(job.refuse_join(1, 900)) << "the job is over";
  EXPECT_EQ(words(job.process_ended(killed(2), {}, 7)), "");
}

TEST_F(JobRecoveryTest, ThoseThatDontComeAgainInTimeAreNamed) {
  JobState job = unwinding();
  job.unwound(0, 2, 7);
  EXPECT_EQ(words(job.gather_deadline(2)), "cancel");
  EXPECT_EQ(job.failure()->message,
            "2 of 3 workers were not ready within backend.timeout_s = 5: worker 1 (pid 101) "
            "has not joined, worker 2 (pid 102) has not left its loop; code before fit() in "
            "main() runs in every worker too");
}

TEST_F(JobRecoveryTest, ASurvivorThatSleepsInItsOwnCodeIsNamedWithItsPlace) {
  JobState job = unwinding();
  job.unwound(0, 2, 7);
  job.joined(1, 201, 7);
  const std::vector<Sighting> sightings{
      {.worker = 2, .where = {.step = 8}, .process = "sleeps in hrtimer_nanosleep"}};
  EXPECT_EQ(job.unwinding(), std::vector{2});
  EXPECT_EQ(words(job.gather_deadline(2, sightings)), "cancel");
  EXPECT_EQ(job.failure()->message,
            "1 of 3 workers were not ready within backend.timeout_s = 5: worker 2 (pid 102) "
            "has not left its loop at step 8, and sleeps in hrtimer_nanosleep; a loop leaves a "
            "generation at its next sync or read, so its own work before that has to end");
  EXPECT_EQ(job.failure()->worker, 2);
  EXPECT_EQ(job.failure()->pid, 102);
}

TEST_F(JobRecoveryTest, AWorkerWithoutALinkIsKilledFirst) {
  JobState job = running();
  EXPECT_EQ(words(link_lost(job, 1)), "unwind, gather, kill 1");
  EXPECT_EQ(words(link_lost(job, 1)), "");
  EXPECT_EQ(words(link_lost(job, 0)), "kill 0") << "another, while they gather";
  EXPECT_EQ(words(job.process_ended(killed(1), {}, 7)), "restart 1");
  EXPECT_EQ(words(link_lost(job, 1)), "") << "it hasn't joined yet";
}

}  // namespace
}  // namespace weft::job_recovery_test
