#include "tools/weft/inspect/past_run.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace weft::past_run_test {
namespace {

namespace fs = std::filesystem;

class PastRun : public ::testing::Test {
 protected:
  PastRun() {
    const char* const home = std::getenv("HOME");
    if (home != nullptr) home_ = home;
    ::setenv("HOME", folder_.path().c_str(), 1);
  }
  ~PastRun() override {
    if (home_) ::setenv("HOME", home_->c_str(), 1);
  }
  /// Adds the folder of a run, which is newer than all earlier ones, and returns its path.
  std::string add(const std::string& name, const std::string& job) {
    const std::string run =
        fmt::format("{}/weft_runs/{}-20261121-085432-{}", folder_.path(), name, job.substr(0, 6));
    fs::create_directories(run);
    std::ofstream(run + "/result.json") << fmt::format(
        R"({{"job": "{}", "name": "{}", "ended_by": "loops", "num_workers": 1, "failures": []}})",
        job, name);
    const auto now = fs::file_time_type::clock::now();
    fs::last_write_time(run, now + std::chrono::seconds(++runs_));
    return run;
  }

 private:
  testing::TemporaryFolder folder_;
  std::optional<std::string> home_;
  int runs_ = 0;
};

TEST_F(PastRun, IsFoundByNameByIdAndAsTheNewest) {
  const std::string digits = add("digits", "93ef4a12776321e25d410a59298c9311");
  const std::string gpt = add("gpt", "a3ef4a12776321e25d410a59298c9311");
  EXPECT_EQ(find_past_run("digits"), digits);
  EXPECT_EQ(find_past_run("93ef"), digits);
  EXPECT_EQ(find_past_run("a3ef4a12776321e25d410a59298c9311"), gpt);
  EXPECT_EQ(find_past_run(""), gpt);
  EXPECT_FALSE(find_past_run("93ee"));
  EXPECT_FALSE(find_past_run("9"));
}

/// Folder names have only the first six digits of an id, but a longer id is compared in full.
TEST_F(PastRun, ALongerIdIsComparedWhole) {
  const std::string first = add("digits", "93ef4a12776321e25d410a59298c9311");
  const std::string second = add("gpt", "93ef4affffffffffffffffffffffffff");
  EXPECT_EQ(find_past_run("93ef4a"), second);
  EXPECT_EQ(find_past_run("93ef4a12"), first);
  EXPECT_FALSE(find_past_run("93ef4a13"));
}

}  // namespace
}  // namespace weft::past_run_test
