/// Tests that examples train on a mesh of several hosts whose chips share one memory, with the same
/// bits however the chips are divided among worker processes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/drawn_digits.hpp"

namespace weft::hybrid_mesh_test {
namespace {

using testing::AppProcess;
using Words = std::vector<std::string>;

nlohmann::json train(Words words, int workers, int chips, const Words& variables) {
  for (const char* word : {"--seed", "5", "--json", "{json}"}) words.emplace_back(word);
  words.insert(words.end(), {"--workers", std::to_string(workers), "--chips",
                             std::to_string(chips / std::max(workers, 1))});
  AppProcess app(words, variables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  testing::expect_nothing_left(app.result().at("job"));
  return app.result();
}

/// Trains on 8 chips of 2 hosts. Expects the same bits from each number of worker processes, and
/// the losses of one chip within rounding.
void expect_same_bits(const Words& words, const std::string& mesh) {
  const Words hosts{"WEFT_LAUNCH_MESH=" + mesh};
  const nlohmann::json expected = train(words, 1, 8, hosts);
  for (const int workers : {0, 2, 4}) {
    const nlohmann::json found = train(words, workers, 8, hosts);
    EXPECT_EQ(found.at("loss_history"), expected.at("loss_history")) << workers << " workers";
    EXPECT_EQ(found.at("mesh"), expected.at("mesh"));
  }
  const auto one = train(words, 1, 1, {}).at("loss_history").get<std::vector<double>>();
  const auto losses = expected.at("loss_history").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), one.size());
  ASSERT_GE(losses.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(losses[i], one[i], 1e-3 * one[i]) << i;
}

TEST(HybridMesh, TrainsDigits) { expect_same_bits({DIGITS, "--epochs", "2"}, "data=2x2,model=2"); }

TEST(HybridMesh, TrainsAConvolutionalNet) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("weft-hybrid-{}", ::getpid());
  std::filesystem::create_directories(folder);
  testing::draw_digits(folder);
  expect_same_bits({MNIST_CNN, "--data", folder.string(), "--batch", "32", "--epochs", "1"},
                   "data=2x4,model=1");
  std::filesystem::remove_all(folder);
}

/// Gradients are added between hosts; parameters are sharded, and layers divided, within hosts.
TEST(HybridMesh, TrainsAGptWithShardedParameters) {
  expect_same_bits(
      {CHAR_GPT, "--layers", "2", "--size", "32", "--heads", "4", "--length", "16", "--batch", "8",
       "--steps", "12", "--lr", "0.01", "--sample", "0", "--tp", "--fsdp"},
      "data=2x2,model=2");
}

}  // namespace
}  // namespace weft::hybrid_mesh_test
