/// Tests examples that are ports of well-known programs: what they learn doesn't depend on the
/// layout and equals what torch learns from the same parameters and batches (ports.py,
/// parallel_ports.py and noise_ports.py in tests/golden/torch/).

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <dnnl_version.h>

#include "tests/support/app_process.hpp"
#include "tests/support/golden.hpp"

namespace weft::ports_test {
namespace {

using testing::AppProcess;
using Words = std::vector<std::string>;
using Losses = std::vector<double>;

/// The layouts are one process with one chip, 4 processes with one chip each, and 2 with two each.
const std::vector<Words> kLayouts{{"--workers", "0", "--chips", "1"},
                                  {"--workers", "4", "--chips", "1", "--topology", "4x1"},
                                  {"--workers", "2", "--chips", "2"}};

Losses losses(const std::string& program, const Words& options, const Words& layout) {
  Words words{program, "--seed", "4", "--json", "{json}"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), layout.begin(), layout.end());
  AppProcess app(words);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const nlohmann::json result = app.result();
  testing::expect_nothing_left(result.at("job"));
  return result.at("loss_history");
}

bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw");
#else
  return false;
#endif
}

/// The tolerances were measured with oneDNN 2 on AVX-512. oneDNN 3 sums in another order.
constexpr double kLossTolerance = DNNL_VERSION_MAJOR < 3 ? 1e-3 : 5e-3;
/// The steps of ResNet that are compared. On other processors oneDNN rounds differently. The losses
/// then differ by 1e-6 after 50 steps and by percents after 80, as between two instruction sets of
/// one processor.
const std::size_t kResNetSteps = has_avx512() ? 100 : 50;

void expect_alike(const Losses& found, const Losses& expected, double tolerance = kLossTolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], tolerance * std::abs(expected[i])) << "step " << i;
  }
}

void expect_as_torch(const std::string& program, const std::string& name, Words options,
                     const std::string& golden = "torch/ports.json", std::size_t steps = 100) {
  Losses expected = nlohmann::json::parse(testing::read_golden(golden)).at(name);
  expected.resize(steps);
  for (const char* word : {"--batch", "12", "--steps", "100"}) options.push_back(word);
  for (const Words& layout : kLayouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    Losses found = losses(program, options, layout);
    ASSERT_EQ(found.size(), 100U);
    found.resize(steps);
    expect_alike(found, expected);
  }
}

TEST(Ports, ResNetLearnsAsTorchDoes) {
  expect_as_torch(RESNET, "resnet", {"--plain", "--width", "4", "--lr", "0.0001"},
                  "torch/ports.json", kResNetSteps);
}

TEST(Ports, VisionTransformerLearnsAsTorchDoes) {
  expect_as_torch(VIT, "vit",
                  {"--plain", "--size", "16", "--heads", "2", "--layers", "2", "--lr", "0.001"});
}

TEST(Ports, LstmLearnsAsTorchDoes) {
  expect_as_torch(LSTM_LM, "lstm_lm", {"--text", LICENSE, "--size", "16", "--length", "8"});
}

TEST(Ports, GroupedQueryGptLearnsAsTorchDoes) {
  expect_as_torch(GPT_GQA, "gpt_gqa",
                  {"--text", LICENSE, "--size", "16", "--heads", "2", "--kv_heads", "1", "--layers",
                   "2", "--length", "8", "--sample", "0"});
}

TEST(Ports, GroupedQueryGptWritesWithItsCache) {
  AppProcess app({GPT_GQA, "--workers", "0", "--chips", "2", "--size", "16", "--layers", "1",
                  "--length", "8", "--batch", "2", "--steps", "1", "--sample", "20"});
  EXPECT_NE(app.wait_for_line("----------"), "");
  EXPECT_EQ(app.wait(), 0) << app.output();
}

/// Tests four layouts: one chip; only data parallelism; both kinds of parallelism in two processes;
/// and a shard_map whose groups have chips of both processes.
void expect_parallel_as_torch(const std::string& program, const std::string& name, Words options) {
  std::vector<Words> layouts = kLayouts;
  layouts.push_back({"--workers", "2", "--chips", "2", "--topology", "1x4"});
  const Losses expected =
      nlohmann::json::parse(testing::read_golden("torch/parallel_ports.json")).at(name);
  for (const char* word : {"--text", LICENSE, "--size", "16", "--heads", "2", "--length", "8",
                           "--batch", "16", "--steps", "100"}) {
    options.push_back(word);
  }
  for (const Words& layout : layouts) {
    SCOPED_TRACE(::testing::PrintToString(layout));
    expect_alike(losses(program, options, layout), expected, 1e-5);
  }
}

TEST(Ports, PipelineLearnsAsTorchDoes) {
  expect_parallel_as_torch(PIPELINE, "pipeline", {"--layers", "4"});
}

TEST(Ports, PipelineThatComputesLayersAgainLearnsAsTorchDoes) {
  expect_parallel_as_torch(PIPELINE, "pipeline", {"--layers", "4", "--checkpoint"});
}

TEST(Ports, MixtureOfExpertsLearnsAsTorchDoes) {
  expect_parallel_as_torch(MOE, "moe", {"--layers", "2", "--experts", "4"});
}

TEST(Ports, AutoencoderLearnsAsTorchDoes) {
  expect_as_torch(VAE, "vae", {"--plain"}, "torch/noise_ports.json");
}

TEST(Ports, GeneratorAndJudgeLearnAsTorchDoes) {
  expect_as_torch(GAN, "gan", {"--plain", "--lr", "0.0001"}, "torch/noise_ports.json");
}

/// Expects the same losses on all layouts, with images that are shuffled, and returns them.
Losses expect_one_curve(const std::string& program, const Words& options) {
  const Losses expected = losses(program, options, kLayouts[0]);
  expect_alike(losses(program, options, kLayouts[1]), expected);
  expect_alike(losses(program, options, kLayouts[2]), expected);
  return expected;
}

TEST(Ports, AutoencoderLearnsOneCurveOnAllLayouts) {
  const Losses curve = expect_one_curve(VAE, {"--batch", "32", "--steps", "100"});
  EXPECT_LT(curve.back(), 0.8 * curve.front());
}

TEST(Ports, GeneratorAndJudgeLearnOneCurveOnAllLayouts) {
  const Losses curve = expect_one_curve(GAN, {"--batch", "32", "--steps", "30"});
  EXPECT_LT(curve[20], curve.front());  // the discriminator learns faster at first
}

}  // namespace
}  // namespace weft::ports_test
