/// Tests gradients that accumulate over steps, from losses with different weights that don't all
/// use the same parameters. A worker dies between two updates, the job resumes there, or the job is
/// eager. Every bit must equal that of the undisturbed job.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::accumulation_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;
using Floats = std::vector<float>;

constexpr std::uint64_t kSteps = 12;
constexpr std::uint64_t kEvery = 3;  // the number of steps from one update to the next

struct Net : Module {
  Linear left{*this, "left", {.in_features = 4, .out_features = 3}};
  Linear right{*this, "right", {.in_features = 4, .out_features = 3}};
};

/// Returns the mean loss over the rows that aren't ignored, which are 6, 7 or all 8 rows.
Tensor loss_of(const Net& net, std::uint64_t step, const Mesh& mesh) {
  Floats x;
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < 32; ++i) {
    x.push_back(static_cast<float>((step * 37 + i * 11) % 23) / 23);
  }
  for (std::uint64_t row = 0; row < 8; ++row) {
    labels.push_back(row < step % 3 ? -100 : static_cast<std::int64_t>((row + step) % 3));
  }
  const Tensor rows = to_device(x, {8, 4});
  const Tensor classes = to_device(labels, {8});
  data_parallel({rows, classes}, mesh);
  // Steps 1 and 6 to 8 use the layer `right`, so the first and the third update change it.
  const bool uses_right = step == 1 || step / kEvery == 2;
  return cross_entropy(uses_right ? net.left(rows) + net.right(rows) : net.left(rows), classes,
                       {.ignore_index = -100});
}

Loop train{"test.accumulate", [](TrainContext& ctx, const Config& config) {
             Net net;
             AdamW optimizer(net.parameters(), {.lr = 0.1, .weight_decay = 0.2});
             GradientAccumulation accumulation(net.parameters());
             const std::vector<Parameter> state = state_dict(net, optimizer, accumulation);
             CheckpointManager checkpoints;
             const std::string marker = config.at("marker");
             while (ctx.step() < config.at("end")) {
               if (ctx.world_rank() == 1 && ctx.step() == config.at("kill_step") &&
                   !std::filesystem::exists(marker)) {
                 std::ofstream{marker} << "killed";
                 std::raise(SIGKILL);
               }
               const Tensor loss = loss_of(net, ctx.step(), *ctx.mesh());
               accumulation.add(grad(loss, net.parameters()));
               if (ctx.step() % kEvery == kEvery - 1) optimizer.step(accumulation.take());
               sync();
               Floats values{loss.item<float>()};
               for (const Parameter& own : net.parameters()) {
                 for (const float element : own.to_vector()) values.push_back(element);
               }
               ctx.report({{"values", values}});
               checkpoints.save(state, {.force = true});
             }
           }};

struct Run {
  std::uint64_t end = kSteps;
  std::string resume = "never";
  std::uint64_t kill_step = kSteps;
  DebugMode debug = DebugMode::none;
  int workers = 2;
};

std::vector<std::string> reports_of(const std::string& folder, const Run& run) {
  const TemporaryFolder markers;
  const Config config{
      {"end", run.end}, {"kill_step", run.kill_step}, {"marker", markers.path() + "/killed"}};
  const Result result = run_loop(train, run.workers, config, [&](TrainerOptions& options) {
    options.run.failure.max_failures = run.workers == 0 ? 0 : 1;
    options.run.checkpoint.path = folder;
    options.run.resume = run.resume;
    options.run.debug = run.debug;
    if (run.workers == 0) options.scaling.chips_per_worker = 1;
  });
  expect_ok(result);
  EXPECT_EQ(result.failures.size(), run.kill_step == kSteps ? 0U : 1U);
  std::vector<std::string> reports;
  for (const Metrics& metrics : result.metrics_history) {
    reports.push_back(Config(metrics["values"]).dump());
  }
  return reports;
}

const std::vector<std::string>& undisturbed() {
  static const std::vector<std::string> reports = [] {
    const TemporaryFolder folder;
    return reports_of(folder.path(), {});
  }();
  return reports;
}

/// Returns the elements of the layer `right` after `step`.
std::vector<std::string> right_of(std::size_t step) {
  const Config values = Config::parse(undisturbed()[step]);
  std::vector<std::string> right;
  for (std::size_t i = 1 + 15; i < values.size(); ++i) right.push_back(values[i].dump());
  return right;
}

TEST(Accumulation, UpdatesWhatTheLossesOfItsOwnStepsUse) {
  ASSERT_EQ(undisturbed().size(), kSteps);
  EXPECT_NE(right_of(2), right_of(1));
  EXPECT_EQ(right_of(5), right_of(2));  // not even weight decay changes the layer
  EXPECT_NE(right_of(8), right_of(5));
  EXPECT_EQ(right_of(11), right_of(8));
}

TEST(Accumulation, IsKeptThroughALossBetweenTwoUpdates) {
  for (const std::uint64_t step : {1, 2, 3, 4, 5, 8, 10}) {
    SCOPED_TRACE(step);
    const TemporaryFolder folder;
    EXPECT_EQ(reports_of(folder.path(), {.kill_step = step}), undisturbed());
  }
}

TEST(Accumulation, IsResumedBetweenTwoUpdatesAndKeptAfterThat) {
  for (const std::uint64_t kill : {kSteps, std::uint64_t{3}, std::uint64_t{5}}) {
    for (const std::uint64_t end : {1, 2, 4}) {
      if (kill < end) continue;
      SCOPED_TRACE(fmt::format("resumed at {}, killed at {}", end, kill));
      const TemporaryFolder folder;
      std::vector<std::string> reports = reports_of(folder.path(), {.end = end});
      const std::vector<std::string> more =
          reports_of(folder.path(), {.resume = "auto", .kill_step = kill});
      reports.insert(reports.end(), more.begin(), more.end());
      EXPECT_EQ(reports, undisturbed());
    }
  }
}

TEST(Accumulation, OfAnEagerJobIsThatOfARecordedOne) {
  const TemporaryFolder recorded;
  const TemporaryFolder eager;
  const TemporaryFolder resumed;
  const std::vector<std::string> expected = reports_of(recorded.path(), {.workers = 0});
  ASSERT_EQ(expected.size(), kSteps);
  EXPECT_EQ(reports_of(eager.path(), {.debug = DebugMode::eager, .workers = 0}), expected);
  std::vector<std::string> reports =
      reports_of(resumed.path(), {.end = 4, .debug = DebugMode::eager, .workers = 0});
  const std::vector<std::string> more =
      reports_of(resumed.path(), {.resume = "auto", .debug = DebugMode::eager, .workers = 0});
  reports.insert(reports.end(), more.begin(), more.end());
  EXPECT_EQ(reports, expected);
}

}  // namespace
}  // namespace weft::accumulation_test
