/// JobState where workers hang.

#include <gtest/gtest.h>

#include "actors/supervision/job_state.hpp"

namespace weft {
namespace {

JobState running(RecoveryPolicy policy = {.max_failures = -1}) {
  JobState job(3, policy, 10);
  for (int worker = 0; worker < 3; ++worker) job.joined(worker, 100 + worker);
  EXPECT_EQ(job.phase(), JobPhase::running);
  return job;
}

/// "unwind, kill 1".
std::string words(const Actions& actions) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty()) text += ", ";
    switch (action.kind) {
      case Action::Kind::unwind: text += "unwind"; break;
      case Action::Kind::kill: text += fmt::format("kill {}", action.worker); break;
      case Action::Kind::cancel: text += "cancel"; break;
      default: text += "another"; break;
    }
  }
  return text;
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
  EXPECT_EQ(words(job.hung(stopped({1}), "others wait", 7)), "unwind, kill 1");
  EXPECT_EQ(job.survived().at(0).code, Errc::timeout);
  EXPECT_EQ(job.survived().at(0).message,
            "worker 1 (pid 101) hangs at step 8: others wait, and it is stopped");
  EXPECT_EQ(words(job.hung(stopped({1}), "others wait", 7)), "");
  EXPECT_EQ(words(job.hung(stopped({0}), "others wait", 7)), "kill 0")
      << "it doesn't leave its loop";
  job.unwound(2, 2, 7);
  EXPECT_EQ(words(job.hung(stopped({2}), "others wait", 7)), "") << "it has left its loop";
}

TEST(JobHang, AWorkerThatHangsSaysWhereToAJobThatFails) {
  JobState job = running({.max_failures = 0});
  const Actions actions = job.hung(stopped({1}), "others wait", 7);
  EXPECT_EQ(words(actions), "kill 1, cancel");
  EXPECT_EQ(actions.at(0).number, 1U);
}

TEST(JobHang, WorkersThatAllHangAreOneLoss) {
  JobState job = running({.max_failures = 1});
  const Actions actions = job.hung(stopped({0, 1, 2}), "nobody moves", 7);
  EXPECT_EQ(words(actions), "unwind, kill 0, kill 1, kill 2");
  for (std::size_t i = 1; i < actions.size(); ++i) EXPECT_EQ(actions[i].number, 1U) << i;
  EXPECT_EQ(job.survived().size(), 3U);
  EXPECT_EQ(job.incidents(), 1);
}

TEST(JobHang, WorkersThatAllHangAreAllNamedByAJobThatFails) {
  JobState job = running({.max_failures = 0});
  const Actions actions = job.hung(stopped({0, 1, 2}), "nobody moves", 7);
  EXPECT_EQ(words(actions), "kill 0, kill 1, kill 2, cancel");
  EXPECT_EQ(job.failure()->message,
            "worker 0 (pid 100) hangs at step 8: nobody moves, and it is stopped; so does worker 1 "
            "(pid 101) at step 8: it is stopped; worker 2 (pid 102) at step 8: it is stopped");
  EXPECT_EQ(actions.back().text, job.failure()->message);
}

}  // namespace
}  // namespace weft
