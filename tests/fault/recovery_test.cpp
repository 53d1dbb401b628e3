/// Tests jobs that continue after worker processes die. Real processes are killed at random
/// instants, and the result must equal that of an undisturbed run, bit for bit. WEFT_KILLS sets the
/// number of kills; the default is 24.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/fault/fault_process.hpp"
#include "tests/fault/killer.hpp"
#include "tests/fault/watched_run.hpp"
#include "transport/board/board_format.hpp"

namespace weft::recovery_test {
namespace {

using testing::AppProcess;
using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using testing::wait_until;
using Json = nlohmann::json;

constexpr int kWorkers = 4;
constexpr std::uint64_t kSteps = 132;

std::vector<std::string> digits(const std::string& max_failures = "-1") {
  return {DIGITS, "--epochs", "3",      "--workers",      "4",         "--chips",
          "2",    "--json",   "{json}", "--max-failures", max_failures};
}

const Json& undisturbed() {
  static const Json result = [] {
    AppProcess app(digits());
    EXPECT_EQ(app.wait(), 0) << app.output();
    return app.result();
  }();
  return result;
}

class DigitsRun : public testing::WatchedRun {
 public:
  explicit DigitsRun(const std::string& max_failures = "-1")
      : WatchedRun(digits(max_failures), kWorkers) {}

  Json expect_undisturbed_result() {
    const Json result = expect_result_of(undisturbed());
    EXPECT_EQ(result.at("steps"), kSteps);
    return result;
  }
};

TEST(Recovery, KillsAtRandomInstantsChangeNoBitOfTheResult) {
  constexpr int kKillsPerRun = 8;
  int kills = 0;
  for (std::uint64_t seed = 1; kills < testing::kill_count(24) && !::testing::Test::HasFailure();
       ++seed) {
    SCOPED_TRACE(seed);
    DigitsRun run;
    testing::Killer killer(kWorkers, seed);
    int done = 0;
    for (int i = 0; i < kKillsPerRun && !run.over(); ++i) done += killer.kill_one(run) ? 1 : 0;
    const Json result = run.expect_undisturbed_result();
    kills += done;
  }
}

TEST(Recovery, TwoWorkersAtOnce) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  run.kill(1);
  run.kill(2);
  run.expect_undisturbed_result();
}

TEST(Recovery, AllWorkersAtOnceAreOneFailure) {
  DigitsRun run("1");
  wait_until([&] { return run.step() >= 20; });
  for (int w = 0; w < kWorkers; ++w) run.kill(w);
  run.expect_undisturbed_result();
  EXPECT_EQ(run.app().output().find("is started again in"), std::string::npos)
      << run.app().output();
}

/// The worker is killed as soon as it has joined again, so the second and third kills hit a
/// recovery.
TEST(Recovery, TheSameWorkerThreeTimes) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = run.pid(3);
    run.kill(3);
    wait_until([&] { return run.over() || (run.pid(3) != 0 && run.pid(3) != pid); });
  }
  run.expect_undisturbed_result();
}

TEST(Recovery, ASurvivorDuringTheRecovery) {
  DigitsRun run;
  wait_until([&] { return run.step() >= 20; });
  const pid_t pid = run.pid(0);
  run.kill(0);
  wait_until([&] { return run.over() || (run.pid(0) != 0 && run.pid(0) != pid); });
  run.kill(1);
  run.expect_undisturbed_result();
}

/// Expects that a job whose worker 1 misbehaves once, at step 3, continues as if nothing had
/// happened, and that its failure contains these words.
Json expect_survives(const std::string& mode, std::initializer_list<std::string_view> words,
                     std::vector<std::string> more = {}) {
  static const Json undisturbed = [] {
    FaultApp app({"--mode", "none"});
    EXPECT_EQ(app.wait(), 0) << app.output();
    return app.result().at("history");
  }();
  std::vector<std::string> words_of_app{"--mode", mode, "--max-failures", "1"};
  words_of_app.insert(words_of_app.end(), more.begin(), more.end());
  FaultApp app(words_of_app);
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 0) << app.output();
  const Json result = app.result();
  EXPECT_EQ(result.at("history"), undisturbed) << app.output();
  const Json failures = result.value("failures", Json::array());
  EXPECT_EQ(failures.size(), 1U) << failures;
  if (!failures.empty()) expect_words({{"message", failures[0]}}, words);
  expect_nothing_left(job);
  return result;
}

TEST(Recovery, SurvivesWhatEndsAWorkerAndNamesIt) {
  expect_survives("segv", {"worker 1", "signal 11 (SIGSEGV)", "step 3"});
  expect_survives("check", {"worker 1", "SIGABRT"});
  expect_survives("exit_0", {"worker 1", "exited with code 0", "step 3"});
  expect_survives("throw", {"worker 1", "std::runtime_error: boom", "step 3"});
}

/// After a death at any of these steps the trainer restores the loop's whole state of that step,
/// even tensors that the next steps don't use. Parameters that are never updated belong to it; the
/// optimizer state of a past epoch doesn't.
TEST(Recovery, FindsWhatTheLoopHadAtThatStep) {
  const auto history = [](std::vector<std::string> more) {
    std::vector<std::string> words{"--mode", "epochs", "--steps", "40"};
    words.insert(words.end(), more.begin(), more.end());
    FaultApp app(words);
    EXPECT_EQ(app.wait(), 0) << app.output();
    return app.result().at("history");
  };
  const Json undisturbed = history({"--at", "99"});
  for (const char* at : {"1", "4", "6", "7", "9", "10", "17", "19", "20", "21", "29"}) {
    EXPECT_EQ(history({"--max-failures", "1", "--at", at}), undisturbed) << at;
  }
}

/// The loop makes two parameters named 'weight' and doesn't use the first one, which gets the
/// recovered value.
TEST(Recovery, NamesAParameterWhoseNameAnotherHas) {
  FaultApp calm({"--mode", "twin", "--steps", "8", "--at", "99"});
  EXPECT_EQ(calm.wait(), 0) << calm.output();
  FaultApp app({"--mode", "twin", "--steps", "8", "--max-failures", "1", "--at", "4"});
  expect_words(failure_of(app), {"'weight' is used", "belongs to another parameter"});
}

/// Expects that the trainer has printed the stack of the loop's thread in worker 1, with function
/// names as in the source.
void expect_stack(const Json& result, const std::string& output) {
  EXPECT_NE(output.find("weft::Trainer::fit("), std::string::npos) << output;
  std::ifstream log(result.at("path").get<std::string>() + "/worker-1.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(text.find("the stack of this thread"), std::string::npos);
  EXPECT_NE(text.find("fault_app(_ZN4weft"), std::string::npos) << text;
}

TEST(Recovery, SurvivesAHangAndSaysWhatItWas) {
  const std::vector<std::string> timeout{"--hang-timeout", "1"};
  expect_survives("stop", {"worker 1", "hangs", "waited 1 s", "is stopped"}, timeout);
  expect_survives("spin", {"worker 1", "hangs", "runs, but makes no step"}, timeout);
  expect_survives("deadlock", {"worker 1", "hangs", "sleeps", "worker-1.log"}, timeout);
}

/// No other worker waits for the hung worker, so only the trainer can notice the hang: no step
/// ends.
TEST(Recovery, SurvivesAHangOfTheOnlyWorker) {
  FaultApp calm({"--mode", "none", "--workers", "1"});
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  FaultApp app({"--mode", "deadlock", "--workers", "1", "--victim", "0", "--hang-timeout", "1",
                "--max-failures", "1"});
  ASSERT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history"), calm.result().at("history"));
  expect_words({{"message", app.result().at("failures").at(0)}},
               {"worker 0", "hangs at step 3", "no worker of the job has made a step", "for 1 s",
                "sleeps", "its stack is in", "worker-0.log"});
}

TEST(Recovery, SurvivesAHangOfAllWorkers) {
  FaultApp app({"--mode", "all_sleep", "--hang-timeout", "1", "--max-failures", "1"});
  ASSERT_EQ(app.wait(), 0) << app.output();
  const Json failures = app.result().at("failures");
  ASSERT_EQ(failures.size(), 3U) << failures;
  for (int w = 0; w < 3; ++w) {
    expect_words({{"message", failures.at(static_cast<std::size_t>(w))}},
                 {fmt::format("worker {} ", w), "hangs at step 3", "no worker of the job", "sleeps",
                  "its stack is in"});
  }
}

TEST(Recovery, AHangOfAllThatEndsAJobNamesEachWorker) {
  FaultApp app({"--mode", "all_sleep", "--hang-timeout", "1"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "timeout");
  expect_words(result, {"worker 0", "so does worker 1", "worker 2", "hangs at step 3", "sleeps"});
}

TEST(Recovery, AHangIsWarnedOfWhereItIsNoLoss) {
  FaultApp app({"--mode", "all_sleep", "--hang-warning", "1"});
  app.job();
  app.wait_for_line("the job hangs: nothing has moved");
  expect_words({{"message", app.wait_for_line("BUSY     workers 0-2")}}, {"own code", "sleeps"});
  ::kill(app.pid(), SIGINT);
  EXPECT_EQ(failure_of(app).at("code"), "cancelled");
  const std::string& output = app.output();
  const auto told = output.find("the job hangs");
  EXPECT_EQ(output.find("the job hangs", told + 1), std::string::npos) << "each hang once";
}

TEST(Recovery, AHangInTheTrainersProcessEndsTheJob) {
  FaultApp app({"--mode", "naps", "--workers", "0", "--victim", "0", "--hang-timeout", "1"});
  expect_words(failure_of(app), {"worker 0", "hangs at step 3", "is a thread of this process"});
}

TEST(Recovery, AHangThatEndsAJobSaysWhereItWas) {
  FaultApp app({"--mode", "deadlock", "--hang-timeout", "1"});
  const Json result = failure_of(app);
  expect_words(result, {"worker 1", "hangs", "sleeps", "its stack is in",
                        result.at("path").get<std::string>() + "/worker-1.log"});
  expect_stack(result, app.output());
}

/// The test overwrites the board as a stray pointer in a worker would. The trainer reads the board
/// to say where a dead worker was.
TEST(Recovery, SurvivesABoardThatAWorkerHasWrittenOver) {
  FaultApp calm({"--mode", "none"});
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  FaultApp app({"--mode", "mark", "--max-failures", "1"});
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  {
    const Segment board = Segment::open(Board::segment_name(job), false, 1);
    std::fill(board.data() + sizeof(board_format::BoardHeaderV1), board.data() + board.capacity(),
              std::byte{0xa4});
  }
  ::kill(std::stoi(mark.substr(mark.rfind(' '))), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("history"), calm.result().at("history")) << app.output();
  expect_nothing_left(job);
}

/// The surviving worker calls no sync, so it doesn't leave its loop for the recovery.
TEST(Recovery, NamesASurvivorThatSleepsInItsOwnCode) {
  FaultApp app({"--mode", "mark", "--workers", "2", "--max-failures", "-1", "--timeout", "5"});
  const Board board = Board::open(app.job(), true);
  app.wait_for_line("mark loop");
  ::kill(board.read(1).pid, SIGKILL);
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "timeout");
  EXPECT_EQ(result.at("worker"), 1);
  expect_words(result, {"1 of 2 workers were not ready within backend.timeout_s = 5: worker 1",
                        "has not left its loop at step 3", "sleeps", "its next sync or read"});
}

TEST(Recovery, StartsTheWholeGroupAgainWhereThatIsAskedFor) {
  expect_survives("segv", {"worker 1"}, {"--restart", "group"});
}

/// Expects that loops that lose the steps since the last checkpoint run these steps again and end
/// with the same result.
void expect_goes_on_at_a_checkpoint(bool is_managed) {
  std::vector<std::string> words{"--mode",       "none", "--state-versions", "1", "--steps", "60",
                                 "--save-every", "8",    "--max-failures",   "-1"};
  if (is_managed) words.push_back("--managed");
  FaultApp undisturbed(words);
  ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.output();
  for (const bool has_checkpoint : {true, false}) {
    FaultApp app(words);
    const std::string job = app.job();
    const Board board = Board::open(job, true);
    wait_until([&] { return board.read(2).step >= (has_checkpoint ? 20U : 3U); });
    ::kill(board.read(2).pid, SIGKILL);
    EXPECT_EQ(app.wait(), 0) << app.output();
    EXPECT_EQ(app.result().at("history"), undisturbed.result().at("history"));
    const char* where = has_checkpoint ? "its last checkpoint is /" : "it has no checkpoint yet";
    EXPECT_NE(app.output().find(where), std::string::npos) << app.output();
    expect_nothing_left(job);
  }
}

TEST(Recovery, GoesOnAtAReportedCheckpointWhereOneVersionIsKept) {
  expect_goes_on_at_a_checkpoint(false);
}

TEST(Recovery, GoesOnAtAManagersCheckpointWhereOneVersionIsKept) {
  expect_goes_on_at_a_checkpoint(true);
}

/// After the kill the loops continue from the last step's checkpoint, and make their last report
/// again.
TEST(Recovery, TheLastReportCountsOnceWhereOneVersionIsKept) {
  FaultApp app({"--mode", "ends_again", "--at", "99", "--state-versions", "1", "--save-every", "8",
                "--max-failures", "1", "--workers", "2"});
  EXPECT_EQ(app.wait(), 0) << app.output();
  const Json result = app.result();
  EXPECT_EQ(result.at("failures").size(), 1U);
  EXPECT_NE(app.output().find("continues at step 8"), std::string::npos) << app.output();
  EXPECT_EQ(result.at("history").size(), 8U + 1 + 1) << result.at("history");
}

TEST(Recovery, IsNotTriedWhereTheSameWouldComeAgain) {
  FaultApp app({"--mode", "weft_error", "--max-failures", "3"});
  expect_words(failure_of(app), {"no such thing", "is not started again"});
}

TEST(Recovery, GivesUpAWorkerThatNeverJoinsAgain) {
  FaultApp app({"--mode", "none", "--max-failures", "-1", "--backoff", "0", "--deaths", "1000"});
  const Json result = failure_of(app);
  EXPECT_EQ(result.at("code"), "peer_lost");
  expect_words(result, {"worker 1", "exited with code 3 before it joined",
                        "10 of its processes in a row", "not started again"});
}

/// The loop fails each time it reaches this point, as it does when it saves to a full disk.
TEST(Recovery, GivesUpWhatFailsAgainWithoutAStep) {
  FaultApp app({"--mode", "throw_always", "--max-failures", "-1", "--backoff", "0", "--at", "5"});
  const Json result = failure_of(app);
  expect_words(result,
               {"boom", "the worker failed like this 3 times, and no step was taken after step "});
  EXPECT_EQ(result.at("failures").size(), 2U);
}

TEST(Recovery, EndsAfterMaxFailures) {
  FaultApp app({"--mode", "segv", "--max-failures", "1", "--victim", "1", "--restart", "none"});
  expect_words(failure_of(app), {"worker 1", "SIGSEGV"});
}

}  // namespace
}  // namespace weft::recovery_test
