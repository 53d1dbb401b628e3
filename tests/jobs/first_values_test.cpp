/// Tests that a loop which continues with kept state doesn't make its parameters' first values.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "spmd/nn/init.hpp"
#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::first_values_test {
namespace {

using testing::expect_ok;
using testing::run_loop;

constexpr std::uint64_t kSteps = 6;
constexpr std::uint64_t kKillStep = 3;

/// The number of calls that made first values in this process since its loop began.
std::atomic<int> calls{0};

/// Trains with AdamW. Worker 1 is killed at step 3, unless `marker` exists or is "".
void train(TrainContext& ctx, const Config& config) {
  calls = 0;
  Parameter w = make_parameter("w", 0, {64});
  begin_with(w, "a ramp", [](std::uint64_t first, std::span<float> out) {
    ++calls;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(first + i);
  });
  AdamW optimizer({w}, {.lr = 0.1, .weight_decay = 0.2});
  const std::string marker = config.at("marker");
  while (ctx.step() < kSteps) {
    if (!marker.empty() && ctx.world_rank() == 1 && ctx.step() == kKillStep &&
        !std::filesystem::exists(marker)) {
      std::ofstream{marker} << "killed";
      std::raise(SIGKILL);
    }
    // In every step each worker waits for the other, so that step 1 is kept at the kill.
    const Tensor x = to_device(std::vector<float>(4, 1), {4});
    mark_sharding(x, *ctx.mesh(), {{"data"}});
    const Tensor loss = sum(w * w) * mean(x);
    optimizer.step(grad(loss, std::vector{w}));
    sync();
    loss.item();
  }
  ctx.report({{"calls", calls.load()}, {"w", w.to_vector()}});
}

Loop loop{"test.first_values", train};

Result run(const std::string& marker) {
  return run_loop(loop, 2, {{"marker", marker}},
                  [](TrainerOptions& options) { options.run.failure.max_failures = 1; });
}

TEST(FirstValues, AreNotMadeWhereTheStateIsKept) {
  const Result undisturbed = run("");
  expect_ok(undisturbed);
  const testing::TemporaryFolder folder;
  const Result continued = run(folder.path() + "/killed");
  expect_ok(continued);
  ASSERT_EQ(continued.failures.size(), 1U);
  ASSERT_EQ(continued.worker_metrics.size(), 2U);
  for (std::size_t worker = 0; worker < 2; ++worker) {
    EXPECT_GT(undisturbed.worker_metrics.at(worker).at("calls"), 0) << worker;
    EXPECT_EQ(continued.worker_metrics[worker].at("calls"), 0) << worker;
    EXPECT_EQ(continued.worker_metrics[worker].at("w"), undisturbed.worker_metrics[worker].at("w"));
  }
}

}  // namespace
}  // namespace weft::first_values_test
