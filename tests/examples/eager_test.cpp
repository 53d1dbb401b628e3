/// Runs examples as eager jobs, which have to learn the same as on one chip.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/app_process.hpp"

namespace weft::eager_test {
namespace {

using testing::AppProcess;
using Words = std::vector<std::string>;

std::vector<double> losses(Words words, const Words& layout, const Words& variables) {
  for (const char* word : {"--seed", "4", "--json", "{json}"}) words.emplace_back(word);
  words.insert(words.end(), layout.begin(), layout.end());
  AppProcess app(words, variables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const nlohmann::json result = app.result();
  testing::expect_nothing_left(result.at("job"));
  return result.at("loss_history");
}

void expect_equal_losses(const Words& words) {
  const std::vector<double> recorded = losses(words, {"--workers", "1", "--chips", "1"}, {});
  const std::vector<double> eager =
      losses(words, {"--workers", "2", "--chips", "2"}, {"WEFT_EAGER=1"});
  ASSERT_EQ(eager.size(), recorded.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    ASSERT_NEAR(eager[i], recorded[i], 1e-5 * std::abs(recorded[i])) << "step " << i;
  }
}

TEST(EagerExamples, DigitsLearnsTheSame) { expect_equal_losses({DIGITS, "--epochs", "1"}); }

TEST(EagerExamples, ResNetLearnsTheSame) {
  expect_equal_losses({RESNET, "--plain", "--width", "4", "--batch", "12", "--steps", "5"});
}

TEST(EagerExamples, GroupedQueryGptLearnsTheSame) {
  expect_equal_losses({GPT_GQA, "--text", LICENSE, "--size", "16", "--heads", "2", "--kv_heads",
                       "1", "--layers", "2", "--length", "8", "--sample", "0", "--batch", "12",
                       "--steps", "5"});
}

TEST(EagerExamples, LstmLearnsTheSame) {
  expect_equal_losses({LSTM_LM, "--text", LICENSE, "--size", "16", "--length", "8", "--batch", "12",
                       "--steps", "5"});
}

}  // namespace
}  // namespace weft::eager_test
