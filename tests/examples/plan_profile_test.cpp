/// Tests `weft plan --profile` of running jobs and of jobs that have ended.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/app_process.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"

namespace weft::plan_profile_test {
namespace {

using Json = nlohmann::json;
using testing::AppProcess;
using testing::TemporaryFolder;

std::string output_of(const std::vector<std::string>& words, int code = 0) {
  AppProcess process(words);
  EXPECT_EQ(process.wait(), code) << process.output();
  return process.output();
}

/// Runs a job of digits that ends well, and returns its run folder.
std::string run_in(const TemporaryFolder& home, const std::string& trace) {
  AppProcess app({DIGITS, "--workers", "2", "--chips", "2", "--epochs", "1"},
                 {"HOME=" + home.path(), "WEFT_TRACE=" + trace});
  EXPECT_EQ(app.wait(), 0) << app.output();
  for (const auto& entry : std::filesystem::directory_iterator(home.path() + "/weft_runs")) {
    if (entry.is_directory() && !entry.is_symlink()) return entry.path().string();
  }
  return "";
}

TEST(PlanProfile, OfAJobThatWasTracedAndHasEnded) {
  const TemporaryFolder home;
  const std::string run_dir = run_in(home, "full");
  const std::string svg = home.path() + "/roofline.svg";
  const Json profile = Json::parse(output_of({WEFT, "plan", "--profile", run_dir, "--json", "--svg",
                                              svg, "--gflops", "100", "--gbytes", "20"}));
  EXPECT_EQ(profile.at("schema"), "weft.profile/1");
  EXPECT_EQ(profile.at("chips"), 4);
  // Each of the 4 chips has 44 steps; the first isn't profiled.
  EXPECT_EQ(profile.at("runs"), 4 * 43);
  EXPECT_EQ(profile.at("limits").at("from"), "as given");
  EXPECT_EQ(profile.at("limits").at("f32_flops_per_s"), 100e9);
  double seconds = profile.at("other_s");
  double flops = 0;
  std::size_t products = 0;
  std::size_t waits = 0;
  const auto runs_seen = profile.at("runs").get<double>();
  for (const Json& step : profile.at("steps")) {
    seconds += step.at("total_s").get<double>();
    flops += step.at("flops").get<double>() * step.at("count").get<double>() / runs_seen;
    // Without loops and branches, every run executes every step.
    if (step.at("kind") != "update_wait") {
      EXPECT_EQ(step.at("count"), profile.at("runs")) << step;
    }
    if (step.at("op") == "dot_general") {
      ++products;
      EXPECT_GT(step.at("flops_per_s"), 0) << step;
      EXPECT_GT(step.at("of_limit"), 0) << step;
      EXPECT_NE(step.at("at").get<std::string>().find("digits.cpp:"), std::string::npos) << step;
    }
    if (step.at("kind") == "collective") ++waits;
  }
  EXPECT_GE(products, 4U);
  EXPECT_GE(waits, 1U);
  EXPECT_NEAR(seconds, profile.at("total_s").get<double>(), 1e-9);
  EXPECT_NEAR(flops, profile.at("flops").get<double>(), 1e-3 * flops);
  std::ifstream file(svg);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.starts_with("<svg ")) << text;
  EXPECT_NE(text.find("dot_general"), std::string::npos);
  // The other views of the folder are the same as for any job that has ended well.
  EXPECT_NE(output_of({WEFT, "inspect", "why", run_dir}).find("ended well"), std::string::npos);
  EXPECT_NE(output_of({WEFT, "inspect", "late", run_dir}).find("came last"), std::string::npos);
}

TEST(PlanProfile, MeasuresTheMachinesLimits) {
  const TemporaryFolder home;
  const std::string run_dir = run_in(home, "full");
  const std::string text = output_of({WEFT, "plan", "--profile", run_dir});
  EXPECT_NE(text.find("measured just now on"), std::string::npos) << text;
  EXPECT_NE(text.find(" threads for 4 chips\n"), std::string::npos) << text;
  EXPECT_NE(text.find("average run"), std::string::npos) << text;
}

void expect_error_of(const std::vector<std::string>& words, const std::string& text) {
  const std::string output = output_of(words, 3);
  EXPECT_NE(output.find(text), std::string::npos) << output;
}

TEST(PlanProfile, SaysWhichFileIsMissing) {
  const TemporaryFolder home;
  const std::string run_dir = run_in(home, "full");
  const std::vector<std::string> words{WEFT, "plan", "--profile", run_dir};
  const std::vector<std::string> one{WEFT, "plan", "--profile", run_dir, "--program", "4711"};
  expect_error_of(one, "has no program 4711: weft inspect programs");
  std::filesystem::rename(run_dir + "/blackbox/box.bin", home.path() + "/box.bin");
  expect_error_of(words, run_dir + "/blackbox/box.bin doesn't exist");
  std::filesystem::rename(home.path() + "/box.bin", run_dir + "/blackbox/box.bin");
  std::ofstream(run_dir + "/programs/list.jsonl", std::ios::trunc);
  expect_error_of(words, "has no program: " + run_dir + "/programs/list.jsonl lists none");
  std::filesystem::remove_all(run_dir + "/programs");
  expect_error_of(one, "has no program 4711: " + run_dir + "/programs/list.jsonl lists none");
}

void wait_for_step(const std::string& job, std::uint64_t step) {
  const Board board = Board::open(job, true);
  testing::wait_until([&] {
    for (const ActorRow& row : board.readable_rows()) {
      if (row.kind == ActorKind::device && row.step < step) return false;
    }
    return true;
  });
}

/// The running job uses cores while the machine's limits are measured, so the measured limits are
/// too low.
TEST(PlanProfile, OfAJobThatRunsSaysThatLimitsAreTooLow) {
  const TemporaryFolder home;
  AppProcess app({DIGITS, "--workers", "2", "--chips", "1", "--epochs", "1000000"},
                 {"HOME=" + home.path()});
  const std::string job = app.job().substr(0, app.job().find(' '));
  wait_for_step(job, 40);
  const std::string measured = output_of({WEFT, "plan", "--profile", job});
  EXPECT_NE(measured.find("the job ran during the measurement"), std::string::npos) << measured;
  const std::string given =
      output_of({WEFT, "plan", "--profile", job, "--gflops", "100", "--gbytes", "20"});
  EXPECT_EQ(given.find("the job ran during the measurement"), std::string::npos) << given;
  ::kill(app.pid(), SIGKILL);
  app.wait();
  testing::sweep(job);
}

TEST(PlanProfile, SaysHowToRecordOne) {
  const TemporaryFolder home;
  const std::string run_dir = run_in(home, "");
  const std::string text = output_of({WEFT, "plan", "--profile", run_dir}, 3);
  EXPECT_NE(text.find("WEFT_TRACE=full"), std::string::npos) << text;
  output_of({WEFT, "plan", "--profile", run_dir, "--program", "4711"}, 3);
  output_of({WEFT, "plan", "--profile", "no-such-job"}, 2);
  AppProcess alone({WEFT, "plan", "--svg", "roofline.svg"});
  EXPECT_NE(alone.wait(), 0);
  EXPECT_NE(alone.output().find("--profile"), std::string::npos) << alone.output();
}

}  // namespace
}  // namespace weft::plan_profile_test
