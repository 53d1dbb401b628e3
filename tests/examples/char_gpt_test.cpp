/// Trains one GPT under every kind of parallelism.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::char_gpt_test {
namespace {

using testing::AppProcess;

/// Trains a small model for 12 steps; tests/golden/torch/char_gpt.py trains the same one.
nlohmann::json char_gpt(const std::vector<std::string>& options) {
  std::vector<std::string> words{CHAR_GPT, "--layers", "2",     "--size",   "32", "--heads",
                                 "4",      "--length", "16",    "--batch",  "8",  "--steps",
                                 "12",     "--lr",     "0.01",  "--sample", "0",  "--seed",
                                 "3",      "--json",   "{json}"};
  words.insert(words.end(), options.begin(), options.end());
  AppProcess app(words);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const nlohmann::json result = app.result();
  testing::expect_nothing_left(result.at("job"));
  return result;
}

TEST(CharGpt, GivesOneLossCurveUnderEveryKindOfParallelism) {
  const auto losses = [](const nlohmann::json& result) {
    return result.at("loss_history").get<std::vector<double>>();
  };
  const std::vector<double> reference = losses(char_gpt({"--workers", "1", "--chips", "1"}));
  ASSERT_EQ(reference.size(), 12U);
  EXPECT_LT(reference.back(), 0.9 * reference.front());
  const std::vector<std::vector<std::string>> kinds{
      {},
      {"--tp"},
      {"--fsdp"},
      {"--zero1"},
      {"--tp", "--fsdp"},
      {"--tp", "--sp"},
      {"--tp", "--sp", "--fsdp"},
  };
  for (const std::vector<std::string>& kind : kinds) {
    SCOPED_TRACE(::testing::PrintToString(kind));
    std::vector<std::string> words{"--workers", "2", "--chips", "4", "--topology", "4x2"};
    words.insert(words.end(), kind.begin(), kind.end());
    const std::vector<double> found = losses(char_gpt(words));
    ASSERT_EQ(found.size(), reference.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], reference[i], 1e-3 * reference[i]) << "step " << i;
    }
  }
}

TEST(CharGpt, LearnsAsTorchDoes) {
  const auto losses = [](const nlohmann::json& json) {
    return json.at("loss_history").get<std::vector<double>>();
  };
  const std::vector<double> expected =
      losses(nlohmann::json::parse(testing::read_golden("torch/char_gpt.json")));
  const std::vector<double> found =
      losses(char_gpt({"--workers", "0", "--chips", "4", "--tp", "--text", LICENSE}));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * expected[i]) << "step " << i;
  }
}

TEST(CharGpt, TrainsInBfloat16) {
  const auto losses = [](const nlohmann::json& result) {
    return result.at("loss_history").get<std::vector<double>>();
  };
  const std::vector<std::string> layout{"--workers", "0", "--chips", "4"};
  const std::vector<double> exact = losses(char_gpt(layout));
  std::vector<std::string> words = layout;
  words.insert(words.end(), {"--bf16", "--tp"});
  const std::vector<double> found = losses(char_gpt(words));
  ASSERT_EQ(found.size(), exact.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], exact[i], 0.02 * exact[i]) << "step " << i;
  }
  EXPECT_NE(found, exact);
}

TEST(CharGpt, WritesAtTheEnd) {
  AppProcess app({CHAR_GPT, "--workers", "0", "--chips", "2", "--layers", "1", "--size", "16",
                  "--length", "8", "--batch", "2", "--steps", "1", "--sample", "20", "--dropout",
                  "0.1"});
  EXPECT_NE(app.wait_for_line("----------"), "");
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST(CharGpt, SaysWhatIsWrongWithTheText) {
  AppProcess missing({CHAR_GPT, "--workers", "0", "--text", "/nowhere/text"});
  EXPECT_EQ(missing.wait(), 1);
  EXPECT_NE(missing.output().find("--text = /nowhere/text: can't be read"), std::string::npos)
      << missing.output();
}

}  // namespace
}  // namespace weft::char_gpt_test
