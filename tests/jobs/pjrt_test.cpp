/// Tests jobs whose chips are devices of a real PJRT plug-in for CPUs: jobs of several processes, a
/// worker that is killed, and errors.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/real_plugins.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::pjrt_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;
using Floats = std::vector<float>;

constexpr std::uint64_t kSteps = 12;

struct Net : Module {
  Linear first{*this, "first", {.in_features = 4, .out_features = 16}};
  Linear second{*this, "second", {.in_features = 16, .out_features = 3}};
  Tensor forward(const Tensor& x) const { return second(relu(first(x))); }
};

Loop train{"test.pjrt_train", [](TrainContext& ctx, const Config& config) {
             Net net;
             AdamW optimizer(net.parameters(), {.lr = 0.05});
             const std::string marker = config.at("marker");
             while (ctx.step() < kSteps) {
               if (ctx.world_rank() == 1 && ctx.step() == config.at("kill_step") &&
                   !std::filesystem::exists(marker)) {
                 std::ofstream{marker} << "killed";
                 std::raise(SIGKILL);
               }
               Floats x;
               std::vector<std::int64_t> labels;
               for (std::uint64_t i = 0; i < 32; ++i) {
                 x.push_back(static_cast<float>((ctx.step() * 37 + i * 11) % 23) / 23);
                 if (i < 8) labels.push_back(static_cast<std::int64_t>((i + ctx.step()) % 3));
               }
               const Tensor rows = to_device(x, {8, 4});
               const Tensor classes = to_device(labels, {8});
               data_parallel({rows, classes}, *ctx.mesh());
               const Tensor loss = cross_entropy(net.forward(rows), classes);
               optimizer.step(grad(loss, net.parameters()));
               sync();
               ctx.report({{"loss", loss.item<float>()}, {"device", device().to_string()}});
             }
           }};

struct Run {
  DeviceKind device = DeviceKind::pjrt_cpu;
  std::uint64_t kill_step = kSteps;
  int workers = 2;
};

Floats losses_of(const Run& run) {
  const TemporaryFolder markers;
  const Config config{{"kill_step", run.kill_step}, {"marker", markers.path() + "/killed"}};
  const Result result = run_loop(train, run.workers, config, [&](TrainerOptions& options) {
    options.scaling.device = run.device;
    options.run.failure.max_failures = run.workers == 0 ? 0 : 1;
  });
  expect_ok(result);
  EXPECT_EQ(result.failures.size(), run.kill_step == kSteps ? 0U : 1U);
  Floats losses;
  for (const Metrics& metrics : result.metrics_history) {
    EXPECT_EQ(metrics["device"], fmt::format("{}:0", to_string(run.device)));
    losses.push_back(metrics["loss"].get<float>());
  }
  EXPECT_EQ(losses.size(), kSteps);
  return losses;
}

class PjrtJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto plugins = testing::real_plugins();
    if (plugins.empty()) GTEST_SKIP() << testing::kNoRealPlugins;
    ::setenv("WEFT_PJRT_PLUGIN", plugins.front().path.c_str(), 1);  // workers inherit this
  }
  void TearDown() override { ::unsetenv("WEFT_PJRT_PLUGIN"); }
};

TEST_F(PjrtJobs, TrainAsTheCpusEngineDoes) {
  const Floats expected = losses_of({.device = DeviceKind::cpu});
  for (const int workers : {0, 2}) {
    SCOPED_TRACE(workers);
    const Floats found = losses_of({.workers = workers});
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  }
}

TEST_F(PjrtJobs, LoseNoStepAndNoBitWithAKilledWorker) {
  EXPECT_EQ(losses_of({.kill_step = 6}), losses_of({}));
}

/// Returns the inodes of the files with executables. A file that is written again gets another
/// inode.
std::map<std::string, std::uint64_t> executables_in(const std::string& folder) {
  std::map<std::string, std::uint64_t> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".weftexec") continue;
    struct stat status {};
    EXPECT_EQ(::stat(file.path().c_str(), &status), 0);
    files[file.path().filename()] = status.st_ino;
  }
  return files;
}

TEST_F(PjrtJobs, CompileNothingThatAnEarlierJobHasCompiled) {
  const TemporaryFolder folder;
  ::setenv("WEFT_COMPILE_CACHE", folder.path().c_str(), 1);
  const Floats first = losses_of({});
  const auto kept = executables_in(folder.path());
  EXPECT_FALSE(kept.empty());
  EXPECT_EQ(losses_of({}), first);
  EXPECT_EQ(executables_in(folder.path()), kept);
  ::unsetenv("WEFT_COMPILE_CACHE");
}

TEST_F(PjrtJobs, NeedAPluginThatExists) {
  ::setenv("WEFT_PJRT_PLUGIN", "/nowhere/plugin.so", 1);
  testing::expect_error(Errc::not_found,
                        {"WEFT_PJRT_PLUGIN = \"/nowhere/plugin.so\"", "doesn't exist"},
                        [] { losses_of({}); });
}

}  // namespace
}  // namespace weft::pjrt_test
