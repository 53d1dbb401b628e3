/// Tests that jobs of several processes refuse mistakes of a loop that would give a wrong result.

#include <gtest/gtest.h>

#include "tests/fault/fault_process.hpp"

namespace weft::mistakes_test {
namespace {

using testing::expect_nothing_left;
using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;

/// In the program's fourth run, which is step 3, worker 1 has other data than the other workers.
TEST(Mistakes, DataThatDifferBetweenWorkersAreRefusedWithTensorLineAndWorker) {
  FaultApp app({"--mode", "other_data"});
  const auto result = failure_of(app);
  expect_words(result, {"at step 3 data.0 f32[24] (fault_app.cpp:",
                        "isn't the same in every worker: workers 0, 2 against worker 1"});
  EXPECT_EQ(result["code"], "invalid_argument");
  EXPECT_EQ(result["worker"], 1);
  EXPECT_EQ(result["step"], 3);
}

TEST(Mistakes, DataAreComparedAgainAfterALoss) {
  FaultApp app({"--mode", "segv", "--max-failures", "1"});
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(Mistakes, DataAreComparedInEveryRunWhereThatIsAskedFor) {
  const std::vector<std::string> arguments{"--mode", "other_data", "--at", "5", "--steps", "7"};
  FaultApp seldom(arguments);
  const std::string job = seldom.job();
  EXPECT_EQ(seldom.wait(), 0) << seldom.output();
  expect_nothing_left(job);
  FaultApp always(arguments, {"WEFT_CHECK_DATA=all"});
  expect_words(failure_of(always), {"at step 5 data.0"});
}

TEST(Mistakes, DataAreNotComparedWhereThatIsSwitchedOff) {
  FaultApp app({"--mode", "other_data"}, {"WEFT_CHECK_DATA=0"});
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(Mistakes, ALabelThatIsNoClassEndsTheJobWithItsLine) {
  FaultApp app({"--mode", "label"});
  const auto result = failure_of(app);
  expect_words(result, {"worker 2", "a label or index is 12: expected 0 to 9 (at fault_app.cpp:"});
  EXPECT_EQ(result["code"], "invalid_argument");
  EXPECT_EQ(result["step"], 3);
}

TEST(Mistakes, ALossThatIsNaNIsWarnedOfOnce) {
  FaultApp app({"--mode", "nan"});
  EXPECT_EQ(app.wait(), 0) << app.output();
  const std::string& output = app.output();
  const auto first = output.find("worker 0 reports sum = nan at step 4 (fault_app.cpp:");
  ASSERT_NE(first, std::string::npos) << output;
  EXPECT_NE(output.find("WEFT_DETECT_ANOMALY=1", first), std::string::npos);
  EXPECT_EQ(output.find(" = nan at step", first + 30), std::string::npos);
}

TEST(Mistakes, TheOpThatGivesTheNaNIsFoundByTheVariable) {
  FaultApp app({"--mode", "nan"}, {"WEFT_DETECT_ANOMALY=1"});
  const auto result = failure_of(app);
  expect_words(result, {"detect_anomaly: log computes a nan in f32[]", "(at fault_app.cpp:"});
  EXPECT_EQ(result["step"], 3);
}

TEST(Mistakes, AReadOnOneWorkerAloneIsNamedWithBothLines) {
  FaultApp app({"--mode", "read_alone"});
  const auto result = failure_of(app);
  expect_words(result, {"traced different programs for run 4", "for the sync at fault_app.cpp:",
                        "worker 1 for the read at fault_app.cpp:", "reads are collective"});
  EXPECT_EQ(result["code"], "program_divergence");
}

TEST(Mistakes, UnevenNumbersOfStepsAreNamedWithTheLines) {
  FaultApp app({"--mode", "return"});
  expect_words(failure_of(app),
               {"worker 1 ended its loop after 3 programs, the last for the sync at fault_app.cpp:",
                "runs program number 4 for the sync at fault_app.cpp:"});
}

}  // namespace
}  // namespace weft::mistakes_test
