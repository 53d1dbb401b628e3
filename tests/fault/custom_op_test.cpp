// Tests the program's own ops on the chips of several processes.

#include "tests/fault/fault_process.hpp"

namespace weft::custom_op_test {
namespace {

using testing::expect_words;
using testing::failure_of;
using testing::FaultApp;

TEST(CustomOp, IsRunByEveryWorker) {
  std::vector<nlohmann::json> histories;
  for (const char* mode : {"none", "custom"}) {
    FaultApp app({"--mode", mode, "--workers", "2"});
    EXPECT_EQ(app.wait(), 0) << app.output();
    histories.push_back(app.result().at("history"));
  }
  EXPECT_FALSE(histories[0].empty());
  EXPECT_EQ(histories[1], histories[0]);
}

TEST(CustomOp, OfAnotherNameIsADivergence) {
  FaultApp app({"--mode", "custom_diverge"});
  const auto result = failure_of(app);
  EXPECT_EQ(result["code"], "program_divergence");
  expect_words(result,
               {"worker 1", "target = \"square\"", "target = \"other_square\"", "fault_app.cpp"});
}

TEST(CustomOp, EndsTheJobWithWhatItsKernelThrows) {
  FaultApp app({"--mode", "custom_throw"});
  const auto result = failure_of(app);
  EXPECT_EQ(result["worker"], 1);
  expect_words(result, {"worker 1", "custom_call 'square' at fault_app.cpp:", "threw: boom"});
}

}  // namespace
}  // namespace weft::custom_op_test
