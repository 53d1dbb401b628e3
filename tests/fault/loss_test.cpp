/// Tests what happens to a job when one of its worker processes dies or stops, with real signals.
/// No test sleeps; the test's time limit catches a hang.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "tests/fault/fault_process.hpp"
#include "transport/board/board.hpp"

namespace weft::loss_test {
namespace {

using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::wait_until;

TEST(Loss, ARunWithoutFaultsLeavesNothing) {
  FaultApp app({"--mode", "none"});
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_TRUE(app.result().at("ok"));
  expect_nothing_left(job);
}

TEST(Loss, AnExceptionIsNamedWithWorkerAndStep) {
  FaultApp app({"--mode", "throw"});
  const auto result = failure_of(app);
  expect_words(result, {"worker 1", "std::runtime_error: boom", "step 3"});
  EXPECT_EQ(result["worker"], 1);
  EXPECT_EQ(result["step"], 3);
}

TEST(Loss, AnErrorKeepsItsCode) {
  FaultApp app({"--mode", "weft_error"});
  EXPECT_EQ(failure_of(app)["code"], "invalid_argument");
}

TEST(Loss, AnExitInTheMiddleOfTheLoopIsNamedWithItsCode) {
  for (const char* code : {"0", "3"}) {
    FaultApp app({"--mode", std::string("exit_") + code});
    expect_words(failure_of(app), {"worker 1", std::string("exited with code ") + code});
  }
}

TEST(Loss, ASegmentationFaultIsNamed) {
  FaultApp app({"--mode", "segv"});
  const auto result = failure_of(app);
  expect_words(result, {"worker 1", "signal 11 (SIGSEGV)"});
  EXPECT_EQ(result["signal"], SIGSEGV);
}

TEST(Loss, AFailedCheckIsNamed) {
  FaultApp app({"--mode", "check"});
  expect_words(failure_of(app), {"worker 1", "SIGABRT"});
  EXPECT_NE(app.output().find("check failed: 1 + 1 == 3; mode = check"), std::string::npos);
}

TEST(Loss, AKillInUserCodeIsNamedWithPidAndStep) {
  FaultApp app({"--mode", "mark"});
  const std::string job = app.job();
  const std::string line = app.wait_for_line("mark loop");
  const pid_t pid = std::stoi(line.substr(line.rfind(' ')));
  ::kill(pid, SIGKILL);
  const auto result = failure_of(app);
  expect_words(result, {"worker 1", "signal 9 (SIGKILL)", std::to_string(pid), "step 3"});
  EXPECT_EQ(result["pid"], pid);
  EXPECT_EQ(result["signal"], SIGKILL);
}

/// Worker 1 stops, so that worker 2's chips wait for it in a collective; then worker 2 dies.
TEST(Loss, AKillInsideACollectiveNamesTheCollective) {
  FaultApp app({"--mode", "mark"});
  const Board board = Board::open(app.job(), true);
  app.wait_for_line("mark loop");
  pid_t pid = 0;
  wait_until([&] {
    for (const ActorRow& row : board.readable_rows()) {
      if (row.kind == ActorKind::device && row.worker == 2 && row.step == 3 && row.in_collective &&
          row.waiting_for >= 0) {
        pid = row.pid;
      }
    }
    return pid != 0;
  });
  ::kill(pid, SIGKILL);
  const auto result = failure_of(app);
  expect_words(result, {"worker 2", "SIGKILL", "step 3", "all_reduce #"});
  EXPECT_NE(result["collective"].get<std::string>().find("fault_app.cpp"), std::string::npos);
}

TEST(Loss, AStoppedWorkerIsNamedByTheTimeoutOfTheOthers) {
  FaultApp app({"--mode", "stop", "--timeout", "3"});
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], "timeout");
  EXPECT_EQ(result["worker"], 1);
  expect_words(result, {"worker 1 (pid", "did not arrive, it is stopped", "all_reduce"});
}

TEST(Loss, AWorkerThatNeverJoinsIsNamedAfterTheTimeout) {
  FaultApp app({"--mode", "never_join", "--timeout", "1"});
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], "timeout");
  expect_words(result, {"1 of 3 workers", "worker 1", "backend.timeout_s = 1"});
}

TEST(Loss, AKillBeforeTheJoinIsNamed) {
  FaultApp app({"--mode", "never_join"});
  const std::string job = app.job();
  std::vector<pid_t> outside;  // workers that haven't joined; in the end only the victim
  wait_until([&] {
    outside = testing::processes_of(job);
    const bool all_started = outside.size() == 3;
    for (const ActorRow& row : Board::open(job, true).readable_rows()) {
      std::erase(outside, row.pid);
    }
    return all_started && outside.size() == 1;
  });
  ::kill(outside.front(), SIGKILL);
  expect_words(failure_of(app), {"SIGKILL", "before it joined"});
}

void expect_refused(const std::string& mode, std::string_view code,
                    std::initializer_list<std::string_view> words) {
  FaultApp app({"--mode", mode});
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], code);
  expect_words(result, words);
}

TEST(Loss, AProgramThatDivergesIsRefusedWithTheLine) {
  expect_refused("diverge", "program_divergence", {"worker 1", "fault_app.cpp"});
}

TEST(Loss, CodeForChipsThatOneWorkerAloneRunsIsRefusedWithTheLine) {
  expect_refused("chip_code", "program_divergence", {"on_each_chip at", "fault_app.cpp"});
}

TEST(Loss, CollectivesThatDisagreeAreNamedWithTheLine) {
  expect_refused("other_size", "program_divergence",
                 {"all_reduce #4 'fault_app.cpp:", "f32 1 x 4", "f32 1 x 5"});
}

TEST(Loss, ALoopThatEndsEarlyIsNamed) {
  expect_refused("return", "uneven_loops", {"worker 1", "ended its loop after 3 programs"});
}

TEST(Loss, ALoopThatEndsBeforeANewProgramIsNamed) {
  expect_refused("return_before_new", "uneven_loops",
                 {"worker 1 ended its loop after 3 programs", "number 4"});
}

/// Kills a random worker at a random step in each of WEFT_KILLS jobs (by default 5). WEFT_SEED
/// repeats the kills of an earlier run.
TEST(Loss, RandomKillsEndCleanlyAndNameTheWorker) {
  const char* kills = std::getenv("WEFT_KILLS");
  const char* seed_text = std::getenv("WEFT_SEED");
  const unsigned seed =
      seed_text != nullptr ? static_cast<unsigned>(std::atoi(seed_text)) : std::random_device{}();
  std::mt19937 random(seed);
  for (int i = 0; i < (kills != nullptr ? std::atoi(kills) : 5); ++i) {
    SCOPED_TRACE(fmt::format("WEFT_SEED={} kill {}", seed, i));
    FaultApp app({"--workers", "4", "--chips", "4", "--steps", "1000000000"});
    const std::string job = app.job();
    const int victim = static_cast<int>(random() % 4);
    const std::uint64_t step = random() % 200;
    pid_t pid = 0;
    {
      const Board board = Board::open(job, true);
      wait_until([&] {
        const ActorRow row = board.read(1 + victim);
        if (row.step >= step) pid = row.pid;
        return pid != 0;
      });
    }
    for (auto spin = random() % 100'000; spin != 0; --spin) asm volatile("");
    ::kill(pid, SIGKILL);
    const auto result = failure_of(app);
    EXPECT_EQ(result["worker"], victim);
    EXPECT_EQ(result["pid"], pid);
    EXPECT_EQ(result["signal"], SIGKILL);
  }
}

}  // namespace
}  // namespace weft::loss_test
