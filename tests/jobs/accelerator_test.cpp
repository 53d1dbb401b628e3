/// Tests jobs whose chips have memory of their own, on the devices of a real PJRT plug-in for CPUs:
/// losses, the mirror of the state, and workers that are killed at every stage of a step.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/forks.hpp"
#include "tests/support/killing_pjrt/killing_pjrt.hpp"
#include "tests/support/real_plugins.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::accelerator_test {
namespace {

using testing::expect_error;
using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;
using Floats = std::vector<float>;

constexpr std::uint64_t kSteps = 10;

struct Layers : Module {
  Linear first{*this, "first", {.in_features = 6, .out_features = 24}};
  Linear second{*this, "second", {.in_features = 24, .out_features = 2}};
  Tensor forward(const Tensor& x) const { return second(tanh(first(x))); }
};

/// Writes each step to the file config["begun"] when the step begins.
Loop train{"test.accelerator_train", [](TrainContext& ctx, const Config& config) {
             Layers layers;
             AdamW optimizer(layers.parameters(), {.lr = 0.03});
             std::ofstream begun(config.at("begun").get<std::string>(), std::ios::app);
             while (ctx.step() < kSteps) {
               begun << ctx.step() << std::endl;
               Floats x, y;
               for (std::uint64_t i = 0; i < 48; ++i) {
                 x.push_back(static_cast<float>((ctx.step() * 29 + i * 13) % 31) / 31);
                 if (i < 16) y.push_back(static_cast<float>((i * 7 + ctx.step()) % 5) / 5);
               }
               const Tensor rows = to_device(x, {8, 6});
               const Tensor wanted = to_device(y, {8, 2});
               data_parallel({rows, wanted}, *ctx.mesh());
               const Tensor loss = mse_loss(layers.forward(rows), wanted);
               optimizer.step(grad(loss, layers.parameters()));
               sync();
               ctx.report({{"loss", loss.item<float>()}, {"device", device().to_string()}});
             }
           }};

struct Trained {
  Floats losses{};
  std::vector<std::uint64_t> begun{};  ///< the steps in the order in which they began
};

Trained train_on(DeviceKind device, int workers, std::size_t expected_failures = 0) {
  const TemporaryFolder folder;
  const std::string begun = folder.path() + "/begun";
  const Result result = run_loop(train, workers, {{"begun", begun}}, [&](TrainerOptions& options) {
    options.scaling.device = device;
    if (workers == 0) return;
    options.run.failure.max_failures = 1;
    options.run.check_replicas_every = 3;
  });
  expect_ok(result);
  EXPECT_EQ(result.failures.size(), expected_failures);
  Trained trained;
  for (const Metrics& metrics : result.metrics_history) {
    EXPECT_EQ(metrics["device"], fmt::format("{}:0", to_string(device)));
    trained.losses.push_back(metrics["loss"].get<float>());
  }
  EXPECT_EQ(trained.losses.size(), kSteps);
  std::ifstream file(begun);
  for (std::uint64_t step = 0; file >> step;) trained.begun.push_back(step);
  return trained;
}

class AcceleratorJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto plugins = testing::real_plugins();
    if (plugins.empty()) GTEST_SKIP() << testing::kNoRealPlugins;
    ::setenv(testing::kRealPluginVariable, plugins.front().path.c_str(), 1);
    ::setenv("WEFT_PJRT_PLUGIN", WEFT_KILLING_PJRT, 1);  // workers inherit this
  }
  void TearDown() override {
    for (const char* name :
         {"WEFT_PJRT_PLUGIN", testing::kRealPluginVariable, testing::kKillVariable}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(AcceleratorJobs, TrainAsTheCpusEngineDoes) {
  const Floats expected = train_on(DeviceKind::cpu, 1).losses;
  for (const int workers : {0, 1}) {
    SCOPED_TRACE(workers);
    const Floats found = train_on(DeviceKind::pjrt_mirrored, workers).losses;
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  }
}

/// Kills in copies to the host come after a few steps, because each step makes 14 copies: the loss,
/// 4 parameters, two moments of each, and the optimizer's count.
TEST_F(AcceleratorJobs, LoseNoStepAndNoBitWithAKilledWorker) {
  const Floats undisturbed = train_on(DeviceKind::pjrt_mirrored, 1).losses;
  std::vector<std::string> kills{"PJRT_Client_Compile 1", "PJRT_LoadedExecutable_Execute 1",
                                 "PJRT_LoadedExecutable_Execute 6"};
  const std::uint64_t copies = testing::number_from_environment("WEFT_KILLS", 3);
  for (std::uint64_t i = 0; i < copies; ++i) {
    kills.push_back(fmt::format("PJRT_Buffer_ToHostBuffer {}", 40 + 7 * i % 80));
  }
  for (const std::string& kill : kills) {
    SCOPED_TRACE(kill);
    const TemporaryFolder folder;
    ::setenv(testing::kKillVariable, (kill + " " + folder.path() + "/killed").c_str(), 1);
    const auto [losses, begun] = train_on(DeviceKind::pjrt_mirrored, 1, 1);
    EXPECT_EQ(losses, undisturbed);
    // When a step begins, the previous step's run has ended and has committed the state that the
    // run read. So a killed job goes back by one step at most.
    for (std::size_t i = 1; i < begun.size(); ++i) EXPECT_GE(begun[i] + 1, begun[i - 1]) << i;
  }
}

TEST_F(AcceleratorJobs, HaveOneWorker) {
  expect_error(Errc::invalid_argument,
               {"scaling.device = pjrt:mirrored", "scaling.num_workers = 2", "set"},
               [] { train_on(DeviceKind::pjrt_mirrored, 2); });
}

}  // namespace
}  // namespace weft::accelerator_test
