/// Tests JobState with workers that hang.

#include <gtest/gtest.h>

#include "actors/supervision/job_state.hpp"
#include "tests/support/action_text.hpp"

namespace weft::job_hang_test {
namespace {

using testing::words;

JobState running(RecoveryPolicy policy = {.max_failures = -1}) {
  JobState job({.num_workers = 3, .recovery = policy, .lease_steps = 10});
  for (int worker = 0; worker < 3; ++worker) job.joined(worker, 100 + worker, 0);
  EXPECT_EQ(job.phase(), JobPhase::running);
  return job;
}

std::vector<Sighting> stopped(std::initializer_list<int> workers) {
  std::vector<Sighting> hanging;
  for (const int worker : workers) {
    hanging.push_back({.worker = worker, .where = {.step = 8}, .process = "is stopped"});
  }
  return hanging;
}

TEST(JobHang, AWorkerThatHangsIsKilledFirst) {
  JobState job = running();
  EXPECT_EQ(words(job.hung(stopped({1}), "others wait", 7)),
            "unwind, gather, kill 1 with its stack");
  EXPECT_EQ(job.recovery().failures().at(0).code, Errc::timeout);
  EXPECT_EQ(job.recovery().failures().at(0).message,
            "worker 1 (pid 101) hangs at step 8: others wait, and it is stopped");
  EXPECT_EQ(words(job.hung(stopped({1}), "others wait", 7)), "");
  EXPECT_EQ(words(job.hung(stopped({0}), "others wait", 7)), "kill 0 with its stack")
      << "it doesn't leave its loop";
  job.unwound(2, 2, 7);
  EXPECT_EQ(words(job.hung(stopped({2}), "others wait", 7)), "") << "it has left its loop";
}

TEST(JobHang, AWorkerThatHangsSaysWhereToAJobThatFails) {
  JobState job = running({.max_failures = 0});
  const Actions actions = job.hung(stopped({1}), "others wait", 7);
  EXPECT_EQ(words(actions), "kill 1 with its stack, cancel");
}

TEST(JobHang, WorkersThatAllHangAreOneLoss) {
  JobState job = running({.max_failures = 1});
  const Actions actions = job.hung(stopped({0, 1, 2}), "nobody moves", 7);
  EXPECT_EQ(words(actions),
            "unwind, gather, kill 0 with its stack, kill 1 with its stack, kill 2 with its stack");
  EXPECT_EQ(job.recovery().failures().size(), 3U);
  EXPECT_EQ(job.recovery().incidents(), 1);
}

TEST(JobHang, WorkersThatAllHangAreAllNamedByAJobThatFails) {
  JobState job = running({.max_failures = 0});
  const Actions actions = job.hung(stopped({0, 1, 2}), "nobody moves", 7);
  EXPECT_EQ(words(actions),
            "kill 0 with its stack, kill 1 with its stack, kill 2 with its stack, cancel");
  EXPECT_EQ(job.failure()->message,
            "worker 0 (pid 100) hangs at step 8: nobody moves, and it is stopped; so does worker 1 "
            "(pid 101) at step 8: it is stopped; worker 2 (pid 102) at step 8: it is stopped");
  EXPECT_EQ(std::get<action::Cancel>(actions.back()).why, job.failure()->message);
}

TEST(JobHang, OfAThreadOfTheTrainersProcessKillsNothing) {
  JobState job({.has_processes = false});
  job.joined(0, 100, 0);
  EXPECT_EQ(words(job.hung(stopped({0}), "nobody moves", 7)), "cancel");
}

/// The board decides whom to blame only for a timeout, because other errors of a worker are more
/// specific than the board.
TEST(JobHang, TheAwaitedWorkerIsToBlameForATimeoutOnly) {
  for (const Errc error : {Errc::timeout, Errc::loop_failed}) {
    JobState job = running();
    job.loop_ended({.worker = 0, .step = 8, .error = static_cast<std::uint8_t>(error)}, 7,
                   Missing{.worker = 2, .how = "is stopped"});
    EXPECT_EQ(job.recovery().failures().at(0).worker, error == Errc::timeout ? 2 : 0);
  }
}

}  // namespace
}  // namespace weft::job_hang_test
