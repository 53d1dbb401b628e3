/// `weft plan --profile` of jobs that run, and of those that have ended.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

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

/// The run folder of a job of digits that has ended well.
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
  // Of 44 steps, 4 chips each without its first.
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
    // Without loops and branches every run has every step.
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
  // Its other views are those of a job that has ended well.
  EXPECT_NE(output_of({WEFT, "inspect", "why", run_dir}).find("ended well"), std::string::npos);
  EXPECT_NE(output_of({WEFT, "inspect", "late", run_dir}).find("came last"), std::string::npos);
}

TEST(PlanProfile, MeasuresTheMachinesLimits) {
  const TemporaryFolder home;
  const std::string run_dir = run_in(home, "full");
  const std::string text = output_of({WEFT, "plan", "--profile", run_dir});
  EXPECT_NE(text.find("measured just now on"), std::string::npos) << text;
  EXPECT_NE(text.find("a run, in the mean"), std::string::npos) << text;
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
