/// Tests state that depends on a metric (a plateau schedule, the best value so far, when to stop).
/// In the jobs, a worker dies around an evaluation, or the job resumes from a checkpoint. Every bit
/// must equal that of the undisturbed job.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::host_state_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;
using Floats = std::vector<float>;

constexpr std::uint64_t kSteps = 14;
constexpr std::uint64_t kEvery = 3;  // the number of steps from one evaluation to the next

/// Kills worker 1 once, at the step and place in the config.
class Victim {
 public:
  Victim(const TrainContext& ctx, const Config& config) : ctx_(ctx), config_(config) {}

  void at(const std::string& place) const {
    if (ctx_.world_rank() != 1 || ctx_.step() != config_.at("kill_step")) return;
    if (place != config_.at("kill_at").get<std::string>()) return;
    const std::string marker = config_.at("marker");
    if (std::filesystem::exists(marker)) return;
    std::ofstream{marker} << "killed";
    std::raise(SIGKILL);
  }

 private:
  const TrainContext& ctx_;
  const Config& config_;
};

Floats rows(std::uint64_t step) {
  Floats elements;
  for (std::uint64_t i = 0; i < 32; ++i) {
    elements.push_back(static_cast<float>((step * 37 + i * 11) % 23) / 23);
  }
  return elements;
}

Loop train{"test.train_by_metric", [](TrainContext& ctx, const Config& config) {
             struct Net : Module {
               Linear fc{*this, "fc", {.in_features = 4, .out_features = 4}};
             } net;
             AdamW optimizer(net.parameters(), {.lr = 0.2});
             ParameterAverage average(net.parameters(), {.decay = 0.5});
             PlateauSchedule schedule({.lr = 0.2, .factor = 0.5, .patience = 0, .threshold = 0.2});
             HostNumber best("best", std::numeric_limits<double>::infinity());
             HostNumber evaluations("evaluations", 0);
             Parameter seldom = make_buffer("seldom", 1, {});  // changed in every fifth step
             CheckpointManager checkpoints;
             const Victim victim(ctx, config);
             const auto loss_of = [&](std::uint64_t step) {
               const Tensor x = to_device(rows(step), {8, 4});
               data_parallel({x}, *ctx.mesh());
               return mse_loss(net.fc(x), x);
             };
             while (ctx.step() < config.at("end")) {
               victim.at("begin");
               optimizer.set_lr(schedule.lr());
               const Tensor loss = loss_of(ctx.step());
               optimizer.step(grad(loss, net.parameters()));
               average.update();
               if (ctx.step() % 5 == 4) seldom.assign(seldom * 2.0);
               sync();
               ctx.report({{"loss", loss.item()},
                           {"lr", optimizer.lr()},
                           {"best", best.value()},
                           {"evaluations", evaluations.value()},
                           {"seldom", seldom.item()}});
               if (ctx.step() % kEvery != 0) continue;
               victim.at("before");
               double metric = 0;
               {
                 const AverageScope averaged(average);
                 metric = loss_of(100).item();
                 victim.at("in_scope");
               }
               schedule.step(metric);
               best.set(std::min(metric, best.value()));
               evaluations.set(evaluations.value() + 1);
               victim.at("after");
               std::vector<Parameter> state =
                   state_dict(net, optimizer, average, schedule, best, evaluations);
               state.push_back(seldom);
               checkpoints.save(state, {.metrics = {{"loss", metric}}, .force = true});
               victim.at("saved");
             }
           }};

struct Disturbance {
  std::uint64_t step = 0;
  std::string place = "nowhere";
};

struct Run {
  std::uint64_t end = kSteps;
  std::string resume = "never";
  Disturbance kill{};
};

std::vector<std::string> reports_of(const std::string& folder, const Run& run) {
  const TemporaryFolder markers;
  const Config config{{"end", run.end},
                      {"kill_step", run.kill.step},
                      {"kill_at", run.kill.place},
                      {"marker", markers.path() + "/killed"}};
  const Result result = run_loop(train, 2, config, [&](TrainerOptions& options) {
    options.run.failure.max_failures = 1;
    options.run.checkpoint.path = folder;
    options.run.checkpoint.best_by = "loss";
    options.run.resume = run.resume;
  });
  expect_ok(result);
  EXPECT_EQ(result.failures.size(), run.kill.place == "nowhere" ? 0U : 1U);
  std::vector<std::string> reports;
  for (const Metrics& metrics : result.metrics_history) {
    reports.push_back(Config{metrics["loss"], metrics["lr"], metrics["best"],
                             metrics["evaluations"], metrics["seldom"]}
                          .dump());
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

TEST(HostState, DrivesTheRate) {
  const std::vector<std::string>& reports = undisturbed();
  ASSERT_EQ(reports.size(), kSteps);
  EXPECT_NE(Config::parse(reports.back())[1], Config::parse(reports.front())[1]);
  EXPECT_EQ(Config::parse(reports.back())[3], 4);
}

TEST(HostState, IsKeptThroughALossAtAnyPlaceAroundAnEvaluation) {
  // The evaluation is between steps 5 and 6. At the "begin" of step 6, no version of the state has
  // the evaluation's results yet; in steps 7 and 8, a version has them.
  for (const Disturbance& kill :
       {Disturbance{6, "before"}, Disturbance{6, "in_scope"}, Disturbance{6, "after"},
        Disturbance{6, "saved"}, Disturbance{6, "begin"}, Disturbance{7, "begin"},
        Disturbance{8, "begin"}}) {
    SCOPED_TRACE(kill.place + " at " + std::to_string(kill.step));
    const TemporaryFolder folder;
    EXPECT_EQ(reports_of(folder.path(), {.kill = kill}), undisturbed());
  }
}

TEST(HostState, IsResumedAndKeptThroughALossAfterThat) {
  for (const Disturbance& kill : {Disturbance{}, Disturbance{7, "begin"}, Disturbance{8, "begin"},
                                  Disturbance{10, "begin"}}) {
    SCOPED_TRACE(kill.place + " at " + std::to_string(kill.step));
    const TemporaryFolder folder;
    // The second job begins at step 6, where the first job saved last.
    std::vector<std::string> reports = reports_of(folder.path(), {.end = 7});
    ASSERT_EQ(reports.size(), 7U);
    reports.pop_back();
    const std::vector<std::string> more =
        reports_of(folder.path(), {.resume = "auto", .kill = kill});
    reports.insert(reports.end(), more.begin(), more.end());
    EXPECT_EQ(reports, undisturbed());
  }
}

/// When save() is called, the second swap is recorded but hasn't run. So w and its average still
/// have each other's values. save() must work without a sync() before it.
Loop swaps{
    "test.save_after_swaps", [](TrainContext& ctx) {
      Parameter w = make_parameter("w", Floats{1, 2}, {2});
      ParameterAverage average({w}, {.decay = 0.5});
      average.update();
      w.assign(w + 4.0);
      average.update();
      sync();
      average.swap();
      const double metric = sum(w).item();
      average.swap();
      CheckpointManager checkpoints;
      std::vector<Parameter> state{w};
      for (const Parameter& own : average.state()) state.push_back(own);
      checkpoints.save(state, {.metrics = {{"loss", metric}}, .force = true});
      w.assign(w * 0.0);
      sync();
      checkpoints.restore(1, state);
      ctx.report(
          {{"metric", metric}, {"w", w.to_vector()}, {"average", average.state()[0].to_vector()}});
    }};

TEST(HostState, OfAveragesThatWereSwappedTwiceIsSavedInTheSameStep) {
  const Result result = run_loop(swaps, 2);
  ASSERT_TRUE(expect_ok(result).ok());
  EXPECT_EQ(result.metrics["metric"], 7);
  EXPECT_EQ(result.metrics["w"], (Floats{5, 6}));
  EXPECT_EQ(result.metrics["average"], (Floats{3, 4}));
}

Loop set_alone{"test.set_alone", [](TrainContext& ctx, const Config&) {
                 HostNumber best("best", 0);
                 if (ctx.world_rank() == 1) best.set(1);
                 sync();
               }};

TEST(HostState, ThatOneWorkerAloneSetsIsRefused) {
  const Result result = run_loop(set_alone, 2);
  ASSERT_FALSE(result.ok());
  for (const char* word :
       {"best f64[] (host_state_test.cpp:", "isn't set to the same in every worker", "worker 1"}) {
    EXPECT_NE(result.error->message.find(word), std::string::npos) << result.error->message;
  }
}

}  // namespace
}  // namespace weft::host_state_test
