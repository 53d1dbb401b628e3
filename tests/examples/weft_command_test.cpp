/// `weft launch` and `weft inspect` as a person would use them.

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include <weft/tests/support/app_process.hpp>

namespace weft {
namespace {

using testing::AppProcess;

std::string output_of(const std::vector<std::string>& words, int code = 0) {
  AppProcess process(words);
  EXPECT_EQ(process.wait(), code) << process.output();
  return process.output();
}

AppProcess launch(const std::vector<std::string>& fault_app_arguments) {
  std::vector<std::string> words{WEFT,         "launch", "-n", "2",       "--chips", "2",
                                 "--topology", "2x2",    "--", FAULT_APP, "--json",  "/dev/null"};
  words.insert(words.end(), fault_app_arguments.begin(), fault_app_arguments.end());
  return AppProcess(words);
}

TEST(WeftLaunch, SetsWorkersChipsAndTopologyAndTagsOutput) {
  AppProcess app = launch({"--mode", "mark"});
  const std::string job = app.job();
  const std::string line = app.wait_for_line("mark loop");
  EXPECT_EQ(line.find("[worker 1] mark loop"), 0U) << line;
  const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
  EXPECT_EQ(board.at("mesh").at("shape"), (std::vector{2, 2}));
  EXPECT_EQ(board.at("workers"), 2);
  EXPECT_EQ(board.at("chips"), 4);
  ::kill(std::stoi(line.substr(line.rfind(' '))), SIGKILL);
  EXPECT_EQ(app.wait(), 128 + SIGKILL);
  testing::expect_nothing_left(job);
}

TEST(WeftLaunch, RunsTheMainJobOnOtherSizesThanItsOwn) {
  AppProcess app({WEFT, "launch", "-n", "2", "--chips", "4", "--", DIGITS, "--epochs", "1"});
  EXPECT_NE(app.wait_for_line("mesh (2,4) (\"data\",\"model\")"), "");
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(WeftLaunch, ReturnsTheExitCodeOfTheFirstCause) {
  EXPECT_EQ(launch({"--mode", "none"}).wait(), 0);
  EXPECT_EQ(launch({"--mode", "exit_3"}).wait(), 3);
  EXPECT_EQ(launch({"--mode", "segv"}).wait(), 128 + SIGSEGV);
  EXPECT_EQ(launch({"--mode", "throw"}).wait(), 1);
}

TEST(WeftLaunch, PassesAnInterruptOn) {
  AppProcess app = launch({"--mode", "mark"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGTERM);
  EXPECT_EQ(app.wait(), 1);
  testing::expect_nothing_left(job);
}

TEST(WeftLaunch, SaysWhatItCantStart) {
  EXPECT_NE(output_of({WEFT, "launch", "--", "/no/such/program"}, 127).find("/no/such/program"),
            std::string::npos);
}

TEST(WeftInspect, ShowsEveryActorOfAJobThatRuns) {
  AppProcess app({FAULT_APP, "--json", "{json}", "--mode", "mark"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  EXPECT_NE(output_of({WEFT, "inspect"}).find(job), std::string::npos);
  const std::string table = output_of({WEFT, "inspect", job.substr(0, 8)});
  EXPECT_NE(table.find("mesh (3,2) (\"data\",\"model\")"), std::string::npos) << table;
  const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
  EXPECT_EQ(board.at("status"), "running");
  ASSERT_EQ(board.at("actors").size(), 10U);
  EXPECT_EQ(board.at("actors")[0].at("kind"), "trainer");
  EXPECT_EQ(board.at("actors")[2].at("step"), 3);
  EXPECT_GT(board.at("actors")[9].at("collective").at("number"), 0);
}

/// The trainer is killed, so nobody removes the board: it can still be read.
TEST(WeftInspect, ShowsAJobThatIsDead) {
  AppProcess app({FAULT_APP, "--json", "{json}", "--mode", "mark"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  ::kill(app.pid(), SIGKILL);
  app.wait();
  testing::wait_until([&] { return testing::processes_of(job).empty(); });
  const auto board = nlohmann::json::parse(output_of({WEFT, "inspect", job, "--json"}));
  EXPECT_EQ(board.at("status"), "dead");
  AppProcess sweeper({FAULT_APP, "--json", "{json}"});
  EXPECT_EQ(sweeper.wait(), 0);
  testing::expect_nothing_left(job);
}

TEST(WeftInspect, SaysThatThereIsNoSuchJob) {
  EXPECT_NE(output_of({WEFT, "inspect", "zzz"}, 1).find("no job \"zzz\""), std::string::npos);
}

}  // namespace
}  // namespace weft
