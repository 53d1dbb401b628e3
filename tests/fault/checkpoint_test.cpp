/// Tests jobs of several processes that save checkpoints and are killed. WEFT_KILLS sets the number
/// of kills; the default is 12.

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>

#include "tests/fault/fault_process.hpp"
#include "tests/fault/killer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft::checkpoint_test {
namespace {

namespace fs = std::filesystem;
using testing::AppProcess;
using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::finished;
using testing::processes_of;
using testing::wait_until;
using Json = nlohmann::json;

constexpr std::uint64_t kSteps = 132;

/// Returns the words that run digits, which saves every 3 steps.
std::vector<std::string> digits(const std::string& folder, const std::string& resume,
                                const std::string& chips = "2", const std::string& workers = "2") {
  return {DIGITS, "--epochs",       "3",      "--workers",          workers, "--chips",
          chips,  "--json",         "{json}", "--checkpoint-every", "3",     "--resume",
          resume, "--max-failures", "-1",     "--checkpoint-dir",   folder};
}

const Json& undisturbed() {
  static const Json result = [] {
    const testing::TemporaryFolder folder;
    AppProcess app(digits(folder.path(), "never"));
    return finished(app);
  }();
  return result;
}

/// Expects that all checkpoints that readers see are complete.
void expect_whole(const std::string& folder) {
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    for (const std::string& fault : verify_checkpoint(entry.path, read_manifest(entry.path))) {
      ADD_FAILURE() << entry.path << ": " << fault;
    }
  }
}

/// A run of digits that saves checkpoints.
class SavingRun {
 public:
  explicit SavingRun(const std::string& folder, const std::string& chips = "2",
                     const std::string& workers = "2")
      : app_(digits(folder, "auto", chips, workers)),
        job_(app_.job().substr(0, 32)),
        board_(Board::open(job_, true)) {}

  AppProcess& app() { return app_; }
  const std::string& job() const { return job_; }
  ActorRow worker(int rank) const { return board_.read(1 + rank); }
  bool over() const { return board_.status() > JobStatus::running; }
  /// Waits until a random number of steps have run, and then yields a random number of times.
  void let_run(std::mt19937_64& random) const {
    const std::uint64_t until = worker(0).step + random() % 20;
    wait_until([&] { return over() || worker(0).step >= until; });
    for (auto i = random() % 300; i > 0; --i) ::sched_yield();
  }
  /// Returns the job's process ids, the trainer's first so that it dies before it restarts workers.
  std::vector<pid_t> processes() const {
    std::vector<pid_t> pids{app_.pid()};
    std::ranges::copy(processes_of(job_), std::back_inserter(pids));
    return pids;
  }

 private:
  AppProcess app_;
  std::string job_;
  Board board_;
};

TEST(Checkpoint, TheLossOfAWorkerThatSavesChangesNothing) {
  std::mt19937_64 random(1);
  for (int kills = 0; kills < testing::kill_count(12);) {
    const testing::TemporaryFolder folder;
    SavingRun run(folder.path());
    for (int i = 0; i < 4 && !run.over(); ++i, ++kills) {
      run.let_run(random);
      const pid_t pid = run.worker(static_cast<int>(random() % 2)).pid;
      if (!run.over() && pid > 0) ::kill(pid, SIGKILL);
    }
    const Json result = finished(run.app());
    EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest"));
    EXPECT_EQ(result.at("loss_history"), undisturbed().at("loss_history"));
    expect_whole(folder.path());
    const auto entries = list_checkpoints(folder.path());
    ASSERT_FALSE(entries.empty());
    EXPECT_EQ(entries.back().step, kSteps);
    EXPECT_EQ(entries.size(), 3U) << "max_to_keep";
  }
}

/// Kills all processes at once, in the middle of steps and saves. The next job continues from the
/// newest checkpoint, and the last job ends with the same bits as an undisturbed job.
TEST(Checkpoint, TheLossOfAllProcessesChangesNoBitOfTheEnd) {
  std::mt19937_64 random(2);
  const testing::TemporaryFolder folder;
  std::uint64_t steps = 0;
  int kills = 0;
  for (; kills < testing::kill_count(12); ++kills) {
    SavingRun run(folder.path());
    run.let_run(random);
    if (run.over()) break;
    ::kill(run.app().pid(), SIGKILL);
    for (const pid_t pid : processes_of(run.job())) ::kill(pid, SIGKILL);
    run.app().wait();
    wait_until([&] { return processes_of(run.job()).empty(); });
    expect_whole(folder.path());
    const auto entries = list_checkpoints(folder.path());
    const std::uint64_t newest = entries.empty() ? 0 : entries.back().step;
    EXPECT_GE(newest, steps);
    steps = newest;
  }
  EXPECT_GT(steps, 0U);
  AppProcess last(digits(folder.path(), "auto"));
  const Json result = finished(last);
  EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest"));
  // The history has only the losses of the steps that this job ran itself.
  const Json& all = undisturbed().at("loss_history");
  const Json& own = result.at("loss_history");
  ASSERT_EQ(own.size(), kSteps - steps);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], all[i + steps]) << i;
}

/// Continues on a mesh of 2x2, and expects the losses of the undisturbed job within rounding.
void expect_that_the_curve_goes_on(const std::string& folder) {
  const std::uint64_t step = list_checkpoints(folder).back().step;
  AppProcess last(digits(folder, "auto"));
  const Json result = finished(last);
  const Json& own = result.at("loss_history");
  ASSERT_EQ(own.size(), kSteps - step);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double expected = undisturbed().at("loss_history")[i + step];
    EXPECT_NEAR(own[i].get<double>(), expected, 1e-4 * (1 + expected)) << "step " << i + step;
  }
}

TEST(Checkpoint, TheCurveGoesOnOnAnotherMesh) {
  const testing::TemporaryFolder folder;
  std::mt19937_64 random(3);
  SavingRun run(folder.path(), "4");
  wait_until([&] { return run.worker(0).step >= 30; });
  run.let_run(random);
  for (const pid_t pid : run.processes()) ::kill(pid, SIGKILL);
  run.app().wait();
  expect_that_the_curve_goes_on(folder.path());
}

/// Returns whether a checkpoint is being written or was left unfinished.
bool has_unfinished(const std::string& folder) {
  const fs::directory_iterator entries(folder);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with(".tmp-");
  });
}

/// Kills all processes of 16 chips at once, when a checkpoint is half written. A job on 4 chips
/// continues from the newest complete checkpoint.
TEST(Checkpoint, AKillInTheMiddleOfASaveLeavesACurveThatGoesOnOnFewerChips) {
  std::mt19937_64 random(4);
  std::optional<testing::TemporaryFolder> folder;
  // If the save ends between the check of the folder and the kill, the test tries again.
  for (bool was_saving = false; !was_saving;) {
    folder.emplace();
    SavingRun run(folder->path(), "4", "4");
    const std::uint64_t until = 20 + random() % 60;
    wait_until([&] { return run.over() || run.worker(0).step >= until; });
    const std::vector<pid_t> pids = run.processes();
    wait_until([&] { return run.over() || has_unfinished(folder->path()); });
    ASSERT_FALSE(run.over()) << "no save was seen after step " << until;
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    run.app().wait();
    wait_until([&] { return processes_of(run.job()).empty(); });
    was_saving = has_unfinished(folder->path());
  }
  expect_whole(folder->path());
  expect_that_the_curve_goes_on(folder->path());
}

TEST(Checkpoint, IsSavedWhenTheJobIsAskedToEnd) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> words = digits(folder.path(), "auto");
  words[10] = "0";  // no saves at an interval
  AppProcess app(words);
  const std::string job = app.job();
  const Board board = Board::open(job.substr(0, 32), true);
  wait_until([&] { return board.read(1).step >= 10; });
  ::kill(app.pid(), SIGTERM);
  EXPECT_EQ(app.wait(), 1) << app.output();
  expect_nothing_left(job);
  const auto entries = list_checkpoints(folder.path());
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_GE(entries.back().step, 10U);
  AppProcess last(words);
  const Json result = finished(last);
  EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest"));
  EXPECT_EQ(result.at("steps"), kSteps - entries.back().step);
}

TEST(Checkpoint, OneFolderIsOfOneJobAtATime) {
  const testing::TemporaryFolder folder;
  AppProcess first(digits(folder.path(), "auto"));
  (void)first.job();
  AppProcess second(digits(folder.path(), "auto"));
  EXPECT_EQ(second.wait(), 2) << second.output();
  EXPECT_NE(second.output().find("is in use: job"), std::string::npos) << second.output();
  finished(first);
}

/// The other workers don't save but continue the step, which must be an error, not a hang.
TEST(Checkpoint, OfOneWorkerAloneIsAnErrorWithItsLine) {
  FaultApp app({"--mode", "save_alone"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "program_divergence");
  expect_words(result, {"worker 1", "the save at fault_app.cpp:", "the sync at fault_app.cpp:"});
}

/// Also tests a second save, because workers send the names of all tensors only for the first one.
TEST(Checkpoint, OfOtherTensorsIsAnErrorThatNamesTheFirst) {
  FaultApp app({"--mode", "save_other", "--at", "4"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "program_divergence");
  expect_words(result, {"worker 1 for the save at fault_app.cpp:", "save step 4",
                        "the same tensors as the previous save", "save 'bias' f32[1]"});
}

TEST(Loader, OfAnotherOrderIsAnErrorWithItsLine) {
  FaultApp app({"--mode", "load_other"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "program_divergence");
  expect_words(result, {"worker 1 for the DeviceLoader at fault_app.cpp:", "items of batch 0"});
}

/// The worker dies before all chips have committed the step after the load.
TEST(Checkpoint, WhatALoadReplacesInTheMiddleOfARunSurvivesALoss) {
  FaultApp app(
      {"--mode", "go_back", "--at", "4", "--deaths", "1", "--steps", "6", "--max-failures", "-1"});
  const Json result = finished(app);
  const Json& history = result.at("history");
  ASSERT_EQ(history.size(), 6U) << result;
  const double once = history[0].at("sum");
  for (const std::size_t step : {3, 4, 5}) {
    EXPECT_EQ(history[step].at("sum"), once * static_cast<double>(step - 1)) << result;
  }
}

/// The worker dies in the only save that is due, after all chips have passed the saved step, so a
/// later step is saved instead.
TEST(Checkpoint, ThatALossDropsIsMadeUpAfterIt) {
  FaultApp app({"--mode", "die_saving", "--managed", "--save-every", "1000", "--steps", "1500",
                "--max-failures", "1"});
  const Json result = finished(app);
  EXPECT_EQ(result.at("failures").size(), 1U) << result;
  const std::string folder = result.at("path").get<std::string>() + "/checkpoints";
  const auto entries = list_checkpoints(folder);
  ASSERT_EQ(entries.size(), 1U) << folder;
  EXPECT_GT(entries[0].step, 1000U);
  expect_whole(folder);
}

}  // namespace
}  // namespace weft::checkpoint_test
