/// Tests jobs in which a worker dies inside a scan.

#include <gtest/gtest.h>

#include "tests/fault/fault_process.hpp"

namespace weft::loop_test {
namespace {

using testing::expect_nothing_left;
using testing::expect_words;
using testing::FaultApp;
using Json = nlohmann::json;

/// The victim's custom op kills its process, so that the other workers wait in a collective of some
/// iteration.
TEST(Loop, LosesAWorkerInAnIterationAndNoBitOfTheResult) {
  for (const char* workers : {"2", "4"}) {
    SCOPED_TRACE(workers);
    FaultApp undisturbed({"--mode", "scan", "--workers", workers});
    ASSERT_EQ(undisturbed.wait(), 0) << undisturbed.output();
    FaultApp app({"--mode", "scan_kill", "--workers", workers, "--max-failures", "1"});
    const std::string job = app.job();
    EXPECT_EQ(app.wait(), 0) << app.output();
    const Json result = app.result();
    EXPECT_FALSE(result.at("history").empty());
    EXPECT_EQ(result.at("history"), undisturbed.result().at("history")) << app.output();
    const Json failures = result.value("failures", Json::array());
    ASSERT_EQ(failures.size(), 1U) << failures;
    expect_words({{"message", failures[0]}}, {"worker 1", "signal 9 (SIGKILL)", "step 3"});
    expect_nothing_left(job);
  }
}

}  // namespace
}  // namespace weft::loop_test
