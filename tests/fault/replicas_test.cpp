/// Tests jobs in which a bit of one chip's memory flips.

#include <gtest/gtest.h>

#include "tests/fault/fault_process.hpp"

namespace weft::replicas_test {
namespace {

using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;
using Json = nlohmann::json;

/// Runs a job that must end well, and returns its result.
Json result_of(const std::vector<std::string>& arguments) {
  FaultApp app(arguments);
  const std::string job = app.job();
  EXPECT_EQ(app.wait(), 0) << app.output();
  expect_nothing_left(job);
  return app.result();
}

/// Expects that the job ends with an error about chip 3, which is the last of worker 1's two chips.
void expect_found(const std::vector<std::string>& arguments, std::uint64_t step) {
  FaultApp app(arguments);
  const Json result = failure_of(app);
  expect_words(result, {"step " + std::to_string(step), "'sum'", "chip 3 (worker 1)",
                        "chips 0, 1, 2, 4, 5 (workers 0, 1, 2)"});
  EXPECT_EQ(result.at("code"), "corrupt");
  EXPECT_EQ(result.at("worker"), 1);
  EXPECT_EQ(result.at("step"), step);
}

TEST(Replicas, ABitThatTurnsIsFoundInTheNextStepThatIsChecked) {
  expect_found({"--mode", "flip", "--check-replicas-every", "1"}, 5);
  expect_found({"--mode", "flip", "--check-replicas-every", "3"}, 6);
}

TEST(Replicas, NothingIsFoundWhereNothingIsChecked) {
  EXPECT_TRUE(result_of({"--mode", "flip", "--max-failures", "1"}).at("ok"));
}

TEST(Replicas, ABitThatTurnsAfterALossIsFoundToo) {
  expect_found({"--mode", "segv_flip", "--max-failures", "1", "--check-replicas-every", "1"}, 5);
}

TEST(Replicas, AJobThatIsCheckedGivesTheSame) {
  const Json plain = result_of({}).at("history");
  ASSERT_EQ(plain.size(), 8U);
  const std::vector<std::string> checked{"--check-replicas-every", "1"};
  EXPECT_EQ(result_of(checked).at("history"), plain);
  const Json lost =
      result_of({"--mode", "segv", "--max-failures", "1", "--check-replicas-every", "1"});
  EXPECT_EQ(lost.at("history"), plain);
  EXPECT_EQ(lost.at("failures").size(), 1U);
}

TEST(Replicas, AreComparedInOneProcess) {
  FaultApp app({"--mode", "flip", "--check-replicas-every", "1", "--workers", "0", "--victim", "0",
                "--chips", "3"});
  expect_words(failure_of(app), {"step 5", "'sum'", "chip 2 (worker 0)", "chips 0, 1 (worker 0)"});
}

}  // namespace
}  // namespace weft::replicas_test
