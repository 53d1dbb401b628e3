/// Stages accidents and compares the answers of `weft inspect why` with golden texts. Pids, times,
/// addresses and ids are masked. No test sleeps.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <regex>

#include "tests/fault/fault_process.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/small_shm.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"

namespace weft::why_test {
namespace {

using testing::AppProcess;
using testing::expect_golden;
using testing::FaultApp;
using testing::wait_until;

struct Answer {
  int code = -1;
  std::string text;
};

Answer inspect_why(const std::string& job, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{WEFT, "inspect", "why", job};
  words.insert(words.end(), more.begin(), more.end());
  AppProcess why(words);
  const int code = why.wait();
  return {code, why.output()};
}

/// Masks words that differ from run to run, and line numbers.
std::string masked(std::string text) {
  const std::pair<const char*, const char*> masks[] = {
      {R"(pid \d+)", "pid N"},
      {R"(-CONT \d+)", "-CONT N"},
      {R"(-QUIT \d+)", "-QUIT N"},
      {R"(\d+(\.\d+)? s\b)", "N s"},
      {R"(\d+ % of a core)", "N % of a core"},
      {R"([0-9a-f]{32})", "JOB"},
      {R"(fault_app\.cpp:\d+)", "fault_app.cpp:N"},
      {R"(misbehave\.cpp:\d+)", "misbehave.cpp:N"},
      {R"((\.h|thread):\d+)", "$1:N"},
      {R"(offset \d+ to \d+)", "offset N to N"},
  };
  for (const auto& [pattern, word] : masks)
    text = std::regex_replace(text, std::regex(pattern), word);
  return text;
}

/// Returns whether this machine can't read stacks of other processes, so that the answer lacks
/// lines of the golden text.
bool lacks_stacks(const Answer& answer) {
  return answer.text.find("\n  stack ") != std::string::npos;
}

/// Runs an app that doesn't end by itself. The destructor kills it and removes its shared memory.
class HungApp : public FaultApp {
 public:
  using FaultApp::FaultApp;
  ~HungApp() {
    const std::string id = job();
    ::kill(pid(), SIGKILL);
    wait();
    testing::sweep(id);
  }
};

/// Waits until the chips of all workers except the victim wait in a collective.
void wait_until_others_wait(const std::string& job, std::uint64_t step = 3) {
  const Board board = Board::open(job, true);
  wait_until([&] {
    int waiting = 0, others = 0;
    for (const ActorRow& row : board.readable_rows()) {
      if (row.kind != ActorKind::device || row.worker == 1) continue;
      ++others;
      if (row.step == step && row.in_collective && row.waiting_for >= 0) ++waiting;
    }
    return others != 0 && waiting == others;
  });
}

/// Returns the answer of `weft inspect why` about a job whose worker 1 doesn't reach step 3.
Answer answer_for(const std::string& mode, const std::vector<std::string>& more = {}) {
  HungApp app({"--mode", mode});
  const std::string job = app.job();
  wait_until_others_wait(job);
  // Chips of worker 1 may still run the previous step, so this waits until the answer is a hang.
  Answer answer;
  wait_until([&] {
    answer = inspect_why(job, more);
    return answer.code != 0;
  });
  return answer;
}

TEST(WhyLive, AStoppedWorker) {
  const Answer answer = answer_for("stop");
  if (lacks_stacks(answer)) GTEST_SKIP() << answer.text;
  EXPECT_EQ(answer.code, 10);
  expect_golden("why/stopped.txt", masked(answer.text));
}

TEST(WhyLive, AnEndlessLoopBeforeACollective) {
  const Answer answer = answer_for("spin", {"--patience", "0.000001"});
  if (lacks_stacks(answer)) GTEST_SKIP() << answer.text;
  EXPECT_EQ(answer.code, 10);
  expect_golden("why/busy.txt", masked(answer.text));
}

TEST(WhyLive, AMutexThatTheLoopAndItsThreadWaitFor) {
  HungApp app({"--mode", "deadlock"});
  const std::string job = app.job();
  wait_until_others_wait(job);
  Answer answer;
  // The worker's thread may not have reached the mutex yet.
  wait_until([&] {
    answer = inspect_why(job, {"--patience", "0.3"});
    return answer.text.starts_with("DEADLOCK") || lacks_stacks(answer);
  });
  if (lacks_stacks(answer)) GTEST_SKIP() << answer.text;
  EXPECT_EQ(answer.code, 10);
  expect_golden("why/deadlock.txt", masked(answer.text));
}

TEST(WhyLive, AMutexThatEveryWorkerLocksTwice) {
  HungApp app({"--mode", "all_deadlock"});
  const std::string job = app.job();
  Answer answer;
  wait_until([&] {
    answer = inspect_why(job, {"--patience", "0.3"});
    return answer.text.starts_with("DEADLOCK workers 0-2") || lacks_stacks(answer);
  });
  if (lacks_stacks(answer)) GTEST_SKIP() << answer.text;
  EXPECT_EQ(answer.code, 10);
  expect_golden("why/all-deadlock.txt", masked(answer.text));
}

/// The test has its own /dev/shm, so no other test's job sweeps the dead job.
TEST(WhyLive, TheTrainerKilled) {
  testing::in_own_shm("size=1g", [] {
    FaultApp app({"--mode", "mark"});
    const std::string job = app.job();
    app.wait_for_line("mark loop");
    ::kill(app.pid(), SIGKILL);
    EXPECT_EQ(app.wait(), 128 + SIGKILL);
    const Answer answer = inspect_why(job);
    EXPECT_EQ(answer.code, 10);
    expect_golden("why/lost.txt", masked(answer.text));
    testing::sweep(job);
  });
}

TEST(WhyLive, AJobThatGoesOn) {
  HungApp app({"--mode", "none", "--steps", "1000000"});
  const std::string job = app.job();
  const Board board = Board::open(job, true);
  wait_until([&] { return board.readable_rows().at(1).step > 5; });
  const Answer answer = inspect_why(job);
  EXPECT_TRUE(answer.code == 0 || answer.code == 11) << answer.text;
}

TEST(WhyLive, NoSuchJob) {
  EXPECT_EQ(inspect_why("no-such-job").code, 2);
  EXPECT_EQ(inspect_why("/no/such/folder").code, 2);
}

/// Returns the only run in a folder of runs.
std::string run_in(const testing::TemporaryFolder& runs) {
  std::string run_dir;
  for (const auto& entry : std::filesystem::directory_iterator(runs.path())) {
    if (entry.is_directory() && !entry.is_symlink()) run_dir = entry.path().string();
  }
  return run_dir;
}

/// Runs a job that fails, and returns the answer of `weft inspect why` about its run folder.
std::string answer_of_folder(std::vector<std::string> arguments) {
  const testing::TemporaryFolder runs;
  arguments.insert(arguments.end(), {"--storage", runs.path()});
  FaultApp app(arguments);
  EXPECT_EQ(app.wait(), 1) << app.output();
  const std::string run_dir = run_in(runs);
  for (const char* copy : {"board.bin", "box.bin", "control.bin"}) {
    EXPECT_TRUE(std::filesystem::exists(run_dir + "/blackbox/" + copy)) << run_dir << ' ' << copy;
  }
  const Answer answer = inspect_why(run_dir);
  EXPECT_EQ(answer.code, 10) << answer.text;
  return masked(answer.text);
}

/// Expects this answer about the run folder of a job that hung until SIGTERM ended the job.
void expect_hang_in_folder(const std::string& mode, const std::string& golden) {
  const testing::TemporaryFolder runs;
  FaultApp app({"--mode", mode, "--hang-warning", "0.5", "--grace", "0", "--storage", runs.path()});
  app.wait_for_line("the job hangs: nothing has moved");
  ::kill(app.pid(), SIGTERM);
  EXPECT_EQ(app.wait(), 1) << app.output();
  const Answer answer = inspect_why(run_in(runs));
  if (lacks_stacks(answer)) GTEST_SKIP() << answer.text;
  EXPECT_EQ(answer.code, 10) << answer.text;
  expect_golden("why/" + golden, masked(answer.text));
}

TEST(WhyFolder, AWorkerThatWasStopped) { expect_hang_in_folder("stop", "folder-stopped.txt"); }

TEST(WhyFolder, AnEndlessLoop) { expect_hang_in_folder("spin", "folder-busy.txt"); }

TEST(WhyFolder, ADeadlockOfOneWorker) { expect_hang_in_folder("deadlock", "folder-deadlock.txt"); }

TEST(WhyFolder, ADeadlockOfAllWorkers) {
  expect_hang_in_folder("all_deadlock", "folder-all-deadlock.txt");
}

/// After the job's end, the answer doesn't mention a hang that was over before.
TEST(WhyFolder, AHangThatHasEnded) {
  const testing::TemporaryFolder runs;
  FaultApp app({"--mode", "stop", "--hang-warning", "0.5", "--storage", runs.path()});
  const std::string job = app.job();
  app.wait_for_line("the job hangs: nothing has moved");
  const pid_t victim = Board::open(job, true).readable_rows().at(2).pid;
  ::kill(victim, SIGCONT);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const Answer answer = inspect_why(run_in(runs));
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.text, "well     ended well\n");
}

TEST(WhyFolder, AnExceptionOnOneWorker) {
  expect_golden("why/folder-failed.txt", answer_of_folder({"--mode", "throw"}));
}

/// Worker 0 or worker 2 may be the first to notice, and the answer names the first.
TEST(WhyFolder, ALoopThatEndsBeforeTheOthers) {
  const std::string text = answer_of_folder({"--mode", "return"});
  expect_golden("why/folder-uneven.txt",
                std::regex_replace(text, std::regex("says   worker [02]"), "says   worker W"));
}

/// Chips of any two workers may be the first to notice, and the answer names the first.
TEST(WhyFolder, CollectivesThatDisagree) {
  std::string text = answer_of_folder({"--mode", "other_size"});
  text = std::regex_replace(text, std::regex(R"((worker|chip) \d)"), "$1 N");
  text = std::regex_replace(text, std::regex(R"((of|x) [45]\b)"), "$1 N");
  text = std::regex_replace(text, std::regex("details [0-9a-f]{16}"), "details D");
  expect_golden("why/folder-diverged.txt", text);
}

TEST(WhyFolder, AWorkerThatWasKilled) {
  expect_golden("why/folder-killed.txt", answer_of_folder({"--mode", "kill"}));
}

TEST(WhyFolder, AFullSharedMemory) {
  testing::in_own_shm("size=24m", [] {
    const std::string text = answer_of_folder({"--mode", "big"});
    const std::regex numbers(R"((worker |chip-|step |needs |has |of |size=)\d+)");
    expect_golden("why/folder-no-space.txt", std::regex_replace(text, numbers, "$1N"));
  });
}

/// The launcher keeps copies of the dead job's memory in the run folder.
TEST(WhyFolder, TheTrainerKilledUnderALauncher) {
  const testing::TemporaryFolder runs;
  AppProcess app({WEFT, "launch", "-n", "3", "--", FAULT_APP, "--mode", "kill_trainer", "--json",
                  runs.path() + "/json", "--storage", runs.path()});
  EXPECT_NE(app.wait(), 0) << app.output();
  const Answer answer = inspect_why(run_in(runs));
  EXPECT_EQ(answer.code, 10) << answer.text;
  expect_golden("why/folder-lost.txt", masked(answer.text));
}

/// `weft inspect why` may be killed while it stops a thread of the worker with ptrace.
TEST(WhyLive, AReaderThatIsKilledDisturbsNoJob) {
  HungApp app({"--mode", "slow", "--chips", "1", "--steps", "1000000"});
  const std::string job = app.job();
  const Board board = Board::open(job, true);
  const auto step = [&] { return board.readable_rows().at(1).step; };
  wait_until([&] { return step() > 60; });
  for (std::uint64_t i = 0; i < 30; ++i) {
    AppProcess why({WEFT, "inspect", "why", job});
    const std::uint64_t begin = step();
    wait_until([&] { return step() >= begin + i % 15; });
    ::kill(why.pid(), SIGKILL);
    why.wait();
    const std::uint64_t end = step();
    wait_until([&] { return step() > end + 3; });
  }
}

TEST(WhyLive, AWorkerThatIsSlow) {
  HungApp app({"--mode", "slow", "--chips", "1", "--steps", "1000000"});
  const std::string job = app.job();
  const Board board = Board::open(job, true);
  wait_until([&] { return board.readable_rows().at(1).step > 60; });
  Answer answer;
  wait_until([&] {
    answer = inspect_why(job);
    return answer.text.starts_with("SLOW");
  });
  EXPECT_EQ(answer.code, 11);
  EXPECT_NE(answer.text.find("(worker 1)"), std::string::npos) << answer.text;
}

}  // namespace
}  // namespace weft::why_test
