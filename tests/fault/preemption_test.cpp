/// Tests jobs that are asked to end by SIGTERM: all their loops end at the same step, with their
/// current state.

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "tests/fault/fault_process.hpp"
#include "transport/board/board.hpp"
#include "transport/storage/checkpoint_folder.hpp"

namespace weft::preemption_test {
namespace {

using testing::AppProcess;
using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::wait_until;
using Json = nlohmann::json;

constexpr const char* kForEver = "1000000000";

/// Runs fault_app until the job is told to end, and reads its board.
class EndlessApp : public FaultApp {
 public:
  explicit EndlessApp(std::vector<std::string> more)
      : FaultApp(words(std::move(more))), board_(Board::open(job().substr(0, 32), true)) {}

  ActorRow worker(int rank) const { return board_.read(1 + rank); }
  void wait_for_step(std::uint64_t step) const {
    wait_until([&] { return worker(0).step >= step; });
  }

 private:
  static std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", kForEver});
    return more;
  }
  Board board_;
};

/// The contents of a worker's file of the checkpoint.
struct Saved {
  std::uint64_t step = 0;
  float sum = 0;
};

std::vector<Saved> saved(const Json& result, int workers) {
  std::vector<Saved> all(static_cast<std::size_t>(workers));
  for (int w = 0; w < workers; ++w) {
    std::ifstream file(fmt::format("{}/{}", result.at("checkpoint").get<std::string>(), w));
    Saved& one = all[static_cast<std::size_t>(w)];
    EXPECT_TRUE(file >> one.step >> one.sum) << w;
  }
  return all;
}

void expect_saved_at_one_step(FaultApp& app, std::initializer_list<std::string_view> words) {
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, words);
  const std::uint64_t step = result.at("step");
  EXPECT_GE(step, 4U);  // a worker may begin a step while another is still in the previous one
  // 3 workers with 2 chips each have 24 elements; each step adds the sum of their squares.
  float sum = 0;
  for (std::uint64_t s = 0; s < step; ++s) sum += 4324;
  for (const Saved& one : saved(result, 3)) {
    EXPECT_EQ(one.step, step);
    EXPECT_EQ(one.sum, sum);
  }
  // There is one report for each step, and one for the checkpoint.
  EXPECT_EQ(result.at("history").size(), step + 1);
}

TEST(Preemption, EndsAllLoopsAtOneStep) {
  EndlessApp app({"--mode", "saves"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  expect_saved_at_one_step(app, {"the trainer", "got SIGTERM", "all loops ended at step"});
}

TEST(Preemption, MayReachAWorkerFirst) {
  EndlessApp app({"--mode", "saves"});
  app.wait_for_step(5);
  ::kill(app.worker(2).pid, SIGTERM);
  expect_saved_at_one_step(app, {"worker 2", "got SIGTERM", "all loops ended at step"});
}

TEST(Preemption, MayReachEveryProcess) {
  EndlessApp app({"--mode", "saves"});
  app.wait_for_step(5);
  for (int w = 0; w < 3; ++w) ::kill(app.worker(w).pid, SIGTERM);
  ::kill(app.pid(), SIGTERM);
  expect_saved_at_one_step(app, {"got SIGTERM", "all loops ended at step"});
}

TEST(Preemption, SurvivesALossToo) {
  EndlessApp app({"--mode", "saves", "--max-failures", "-1"});
  app.wait_for_step(5);
  ::kill(app.worker(1).pid, SIGKILL);
  ::kill(app.pid(), SIGTERM);
  expect_saved_at_one_step(app, {"got SIGTERM", "all loops ended at step"});
}

TEST(Preemption, GathersOneCheckpointWhereOneWorkerAloneReportsMetrics) {
  EndlessApp app({"--mode", "saves", "--first-reports"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  expect_saved_at_one_step(app, {"got SIGTERM", "all loops ended at step"});
}

/// Loops that ask only once in several steps whether to end learn of SIGTERM when they ask next.
TEST(Preemption, WaitsForLoopsThatAskSeldom) {
  EndlessApp app({"--mode", "saves", "--ask-every", "7"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  expect_saved_at_one_step(app, {"got SIGTERM", "all loops ended at step"});
}

/// timeout(1), systemd and Slurm send SIGTERM to a program and its group, or to all processes.
TEST(Preemption, MayComeAsOftenAsItLikes) {
  EndlessApp app({"--mode", "saves"});
  app.wait_for_step(5);
  const pid_t last = app.worker(2).pid;
  // A stopped worker keeps the job from ending, so that all signals of the loop below reach the
  // job.
  ::kill(last, SIGSTOP);
  for (int w = 0; w < 3; ++w) ::kill(app.worker(w).pid, SIGTERM);
  app.wait_for_line("its loops are asked to end");
  for (int i = 0; i < 100; ++i) {
    ::kill(app.pid(), SIGTERM);
    ::sched_yield();
  }
  ::kill(last, SIGCONT);
  expect_saved_at_one_step(app, {"got SIGTERM", "all loops ended at step"});
}

/// Digits asks whether to end, saves its parameters, reports the checkpoint and ends, as the guide
/// for users shows.
TEST(Preemption, EndsDigitsWithItsStateSaved) {
  AppProcess app(
      {DIGITS, "--epochs", "1000000", "--workers", "2", "--chips", "2", "--json", "{json}"});
  const std::string job = app.job().substr(0, 32);
  const Board board = Board::open(job, true);
  wait_until([&] { return board.read(1).step >= 5; });
  ::kill(app.pid(), SIGTERM);
  EXPECT_EQ(app.wait(), 1) << app.output();
  const Json result = app.result();
  expect_words({{"message", result.at("error")}}, {"got SIGTERM", "all loops ended at step"});
  const auto steps = result.at("steps").get<std::uint64_t>();
  const auto entries = list_checkpoints(result.at("run_dir").get<std::string>() + "/checkpoints");
  ASSERT_EQ(entries.size(), 1U);
  const CheckpointManifest manifest = read_manifest(entries.front().path);
  EXPECT_EQ(manifest.step, steps);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(manifest.tensors, name, &StoredTensor::name) != manifest.tensors.end();
  };
  EXPECT_TRUE(has("fc3.weight"));
  EXPECT_TRUE(has("fc3.weight.exp_avg"));
  expect_nothing_left(job);
}

TEST(Preemption, EndsLoopsThatNeverAskAtTheirNextStep) {
  EndlessApp app({"--save-every", "2", "--grace", "3600"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"got SIGTERM", "all loops were ended", "reached_preemption()"});
  const std::uint64_t step = result.at("step");
  std::uint64_t reports = 0;
  for (const Json& metrics : result.at("history")) reports += metrics.contains("sum") ? 1U : 0U;
  EXPECT_EQ(reports, step - 1) << "the last step's would have come behind the sync that was left";
  EXPECT_TRUE(result.contains("checkpoint")) << "that there is";
}

TEST(Preemption, EndsALoopThatNeverAsksInTheTrainersProcess) {
  EndlessApp app({"--workers", "0", "--grace", "3600"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  expect_words(failure_of(app), {"got SIGTERM", "all loops were ended"});
}

/// Worker 1 is killed at step 3, and again before it joins; its next restart would be a minute
/// later.
class BackoffApp : public EndlessApp {
 public:
  explicit BackoffApp(std::vector<std::string> more) : EndlessApp(words(std::move(more))) {
    wait_for_line("worker 1 is started again in 60000 ms");
    ::kill(pid(), SIGTERM);
  }

 private:
  static std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.end(), {"--max-failures", "-1", "--backoff", "60", "--grace", "3600",
                             "--save-every", "2"});
    return more;
  }
};

TEST(Preemption, DuringTheBackoffSavesWhatTheLoopsHave) {
  BackoffApp app({"--mode", "saves", "--deaths", "1"});
  const Json result = failure_of(app);
  expect_words(result, {"got SIGTERM", "all loops ended at step"});
  for (const Saved& one : saved(result, 3)) EXPECT_EQ(one.step, result.at("step"));
}

TEST(Preemption, DuringTheBackoffEndsWithTheCheckpointThatThereIs) {
  BackoffApp app({"--mode", "saves", "--deaths", "2"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"got SIGTERM", "worker 1", "exited with code 3",
                        "the job doesn't wait for this worker"});
  for (const Saved& one : saved(result, 3)) EXPECT_EQ(one.step, 2U);
}

TEST(Preemption, DuringTheBackoffEndsLoopsThatNeverAsk) {
  BackoffApp app({"--deaths", "1"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"got SIGTERM", "no loop calls ctx.reached_preemption()"});
  for (const Saved& one : saved(result, 3)) EXPECT_EQ(one.step, 2U);
}

TEST(Preemption, MayReachAWorkerBeforeItCanPassItOn) {
  FaultApp app({"--mode", "never_join", "--max-failures", "5"});
  const std::string job = app.job();
  const Board board = Board::open(job, true);
  pid_t late = 0;  // the worker that hasn't joined and so has no row of the board
  wait_until([&] {
    const pid_t first = board.read(1).pid, third = board.read(3).pid;
    for (const pid_t pid : testing::processes_of(job)) {
      if (first > 0 && third > 0 && pid != first && pid != third) late = pid;
    }
    return late != 0;
  });
  ::kill(late, SIGTERM);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"worker 1 was ended by SIGTERM"});
}

/// Returns the output of `weft inspect` with these words.
std::string inspect(std::vector<std::string> words) {
  words.insert(words.begin(), {WEFT, "inspect"});
  AppProcess command(words);
  EXPECT_EQ(command.wait(), 0) << command.output();
  return command.output();
}

TEST(Preemption, IsNoFailureInItsResultAndItsViews) {
  EndlessApp app({"--mode", "saves"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  const Json ended = failure_of(app);
  const std::string run = ended.at("path");
  const Json result = Json::parse(std::ifstream(run + "/result.json"));
  EXPECT_EQ(result.at("state"), "cancelled");
  const Json shown = Json::parse(inspect({run, "--json"}));
  EXPECT_EQ(shown.at("state"), "cancelled");
  EXPECT_EQ(shown.at("step"), result.at("step"));
  EXPECT_GE(result.at("step"), 5);
  const std::string why = inspect({"why", run});
  EXPECT_TRUE(why.starts_with("well     ended by signal")) << why;
}

/// The program has restored SIGTERM's default action, so the signal kills the worker in its loop.
TEST(Preemption, AWorkerThatSIGTERMKillsInItsLoopIsNoFailure) {
  FaultApp app({"--mode", "default_sigterm", "--grace", "3600", "--max-failures", "0"});
  app.job();
  const std::string mark = app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGTERM);
  app.wait_for_line("its loops are asked to end");
  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGTERM);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"got SIGTERM", "worker 1", "was killed by signal 15 (SIGTERM) at step 3",
                        "before its loop could end"});
}

TEST(Preemption, EndsWithItsGrace) {
  FaultApp app({"--mode", "mark", "--grace", "0.2"});
  app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGTERM);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"got SIGTERM", "had not ended within", "run.grace_s = 0.2",
                        "ctx.reached_preemption()"});
}

TEST(Preemption, EndsAtASecondSignal) {
  FaultApp app({"--mode", "mark", "--grace", "3600"});
  app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGTERM);
  app.wait_for_line("its loops are asked to end");
  ::kill(app.pid(), SIGINT);
  expect_words(failure_of(app), {"got SIGINT"});
}

TEST(Preemption, EndsALoopInTheTrainersProcess) {
  EndlessApp app({"--mode", "saves", "--workers", "0", "--victim", "0"});
  app.wait_for_step(5);
  ::kill(app.pid(), SIGTERM);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "cancelled");
  expect_words(result, {"all loops ended at step"});
  EXPECT_EQ(saved(result, 1)[0].step, result.at("step"));
}

}  // namespace
}  // namespace weft::preemption_test
