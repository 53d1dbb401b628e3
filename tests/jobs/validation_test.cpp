/// Tests validations, which run on checkpoints kept for them while the training continues.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::validation_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_ok;
using testing::run_loop;
using testing::TemporaryFolder;

constexpr int kSteps = 8;

Parameter initial_sum() { return make_parameter("sum", std::vector<float>{0}, {1}); }

/// Saves in each step. After the first step, waits for the file config["go"] if that is set.
void train(TrainContext& ctx, const Config& config) {
  Parameter sum = initial_sum();
  CheckpointManager checkpoints;
  const std::string go = config.value("go", "");
  while (ctx.step() < kSteps) {
    sum.assign(sum + 1.0);
    sync();
    checkpoints.save(std::vector{sum});
    while (ctx.step() == 1 && !go.empty() && !fs::exists(go)) std::this_thread::yield();
  }
  ctx.report({{"done", true}});
}

Loop saves{"test.saves", train};

/// Returns the sum that was in the checkpoint from which this job resumed.
Loop evaluates{"test.evaluates", [](TrainContext&) {
                 Parameter sum = initial_sum();
                 return Metrics{{"sum", sum.to_vector()[0]}};
               }};

Metrics evaluate(const Checkpoint& checkpoint) {
  const TemporaryFolder folder;
  const Result result = Trainer(evaluates, {.scaling = {.num_workers = 1, .chips_per_worker = 1},
                                            .run = {.storage_path = folder.path(),
                                                    .resume = checkpoint.path,
                                                    .handle_signals = false}})
                            .fit();
  if (result.error) throw std::runtime_error(result.error->message);
  return result.returned.at(0);
}

struct Heard : Callback {
  void on_validation(const Validation& validation) override { all.push_back(validation); }
  std::vector<Validation> all;
};

TEST(Validation, RunsAJobOfItsOwnOnACheckpointThatIsRemovedMeanwhile) {
  const TemporaryFolder folder;
  const auto heard = std::make_shared<Heard>();
  const std::string go = folder.path() + "/go";
  const Result result = run_loop(saves, 2, {{"go", go}}, [&](TrainerOptions& options) {
    options.run.storage_path = folder.path();
    options.run.callbacks = {heard};
    options.run.checkpoint.max_to_keep = 1;
    options.run.validation.function = [&](const Checkpoint& checkpoint, std::uint64_t step) {
      if (step == 1) {
        std::ofstream(go) << "on";
        const fs::path saved = fs::path(checkpoint.path).parent_path().parent_path() /
                               "checkpoints" / fs::path(checkpoint.path).filename();
        // Waits until later checkpoints have replaced this one.
        while (fs::exists(saved)) std::this_thread::yield();
      }
      Metrics metrics = evaluate(checkpoint);
      metrics["step"] = step;
      return metrics;
    };
  });
  expect_ok(result);
  ASSERT_GE(result.validations.size(), 2U);
  const Validation& first = result.validations.front();
  EXPECT_EQ(first.state, "succeeded") << first.error;
  EXPECT_EQ(first.metrics, (Metrics{{"sum", 1.0}, {"step", 1}}));
  const Validation& last = result.validations.back();
  EXPECT_EQ(last.state, "succeeded") << last.error;
  EXPECT_EQ(last.metrics, (Metrics{{"sum", kSteps}, {"step", kSteps}}));
  EXPECT_EQ(heard->all.size(), result.validations.size());
  EXPECT_FALSE(fs::exists(result.path + "/validation"));
  std::ifstream file(result.path + "/validation.json");
  const Metrics told = Metrics::parse(file);
  ASSERT_EQ(told.size(), result.validations.size());
  EXPECT_EQ(told.back()["metrics"], last.metrics);
  EXPECT_EQ(Result::load(result.path).validations.size(), result.validations.size());
}

TEST(Validation, SkipsCheckpointsThatANewerOneHasOvertaken) {
  std::latch trained{1};
  struct Opens : Callback {
    explicit Opens(std::latch& latch) : trained(latch) {}
    void on_report(const Metrics&) override { trained.count_down(); }
    std::latch& trained;
  };
  const Result result = run_loop(saves, 1, {}, [&](TrainerOptions& options) {
    options.run.callbacks = {std::make_shared<Opens>(trained)};
    options.run.validation.function = [&](const Checkpoint&, std::uint64_t step) {
      trained.wait();
      return Metrics{{"step", step}};
    };
  });
  expect_ok(result);
  ASSERT_EQ(result.validations.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(result.validations.front().state, "succeeded");
  EXPECT_EQ(result.validations.back().state, "succeeded");
  EXPECT_EQ(result.validations.back().metrics["step"], kSteps);
  for (std::size_t i = 1; i + 1 < result.validations.size(); ++i) {
    EXPECT_EQ(result.validations[i].state, "skipped") << i;
  }
}

TEST(Validation, ThatThrowsEndsNothing) {
  const Result result = run_loop(saves, 1, {}, [&](TrainerOptions& options) {
    options.run.validation.function = [](const Checkpoint&, std::uint64_t) -> Metrics {
      throw std::runtime_error("no data for it");
    };
  });
  expect_ok(result);
  ASSERT_FALSE(result.validations.empty());
  EXPECT_EQ(result.validations.back().state, "failed");
  EXPECT_NE(result.validations.back().error.find("no data for it"), std::string::npos);
}

}  // namespace
}  // namespace weft::validation_test
