#include <weft/optim/learning_rates.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <weft/optim/plateau_schedule.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/interpret_runtime.hpp"
#include "tests/support/safetensors.hpp"

namespace weft::learning_rates_test {
namespace {

using testing::expect_error;

TEST(Schedule, WarmsUpToTheHighestRateAndEndsAtTheLowest) {
  const ScheduleOptions options{.lr = 1, .steps = 14, .warmup = 4, .end_lr = 0.2};
  for (const auto schedule : {cosine_schedule, linear_schedule}) {
    EXPECT_DOUBLE_EQ(schedule(0, options), 0.2);
    EXPECT_DOUBLE_EQ(schedule(3, options), 0.8);
    EXPECT_DOUBLE_EQ(schedule(4, options), 1);
    EXPECT_NEAR(schedule(9, options), 0.6, 1e-12);
    EXPECT_DOUBLE_EQ(schedule(14, options), 0.2);
    EXPECT_DOUBLE_EQ(schedule(1000, options), 0.2);
  }
  EXPECT_NEAR(cosine_schedule(6, options), 0.2 + 0.4 * (1 + std::cos(0.2 * 3.14159265358979)),
              1e-12);
  EXPECT_NEAR(linear_schedule(6, options), 0.84, 1e-12);
}

TEST(Schedule, FallsByStepsAsTorchsStepLr) {
  EXPECT_DOUBLE_EQ(step_schedule(29, 0.05, 30), 0.05);
  EXPECT_DOUBLE_EQ(step_schedule(30, 0.05, 30), 0.05 * 0.1);
  EXPECT_DOUBLE_EQ(step_schedule(60, 0.05, 30, 0.5), 0.05 * 0.25);
}

TEST(Schedule, RefusesWhatHasNoEnd) {
  expect_error(Errc::invalid_argument, {"cosine_schedule: steps = 5 and warmup = 5"},
               [] { cosine_schedule(0, {.steps = 5, .warmup = 5}); });
  expect_error(Errc::invalid_argument, {"linear_schedule: lr = -1"},
               [] { linear_schedule(0, {.lr = -1, .steps = 5}); });
  expect_error(Errc::invalid_argument, {"step_size = 0"}, [] { step_schedule(1, 1, 0); });
}

constexpr double kLr = 0.4;
constexpr std::uint64_t kSteps = 20;
using Schedule = std::function<double(std::uint64_t step)>;

std::vector<std::pair<std::string, Schedule>> torchs_schedules() {
  using Step = std::uint64_t;
  static constexpr std::array<Step, 3> kMilestones{3, 7, 15};
  const OneCycleOptions cycle{.max_lr = kLr, .steps = kSteps};
  OneCycleOptions linear = cycle;
  linear.linear = true;
  linear.warmup_share = 0.4;
  linear.div_factor = 10;
  linear.final_div_factor = 100;
  OneCycleOptions three_phase = cycle;
  three_phase.three_phase = true;
  return {
      {"constant", [](Step s) { return constant_schedule(s, kLr); }},
      {"constant_options", [](Step s) { return constant_schedule(s, kLr, 0.25, 8); }},
      {"exponential", [](Step s) { return exponential_schedule(s, kLr, 0.9); }},
      {"multi_step", [](Step s) { return multi_step_schedule(s, kLr, kMilestones, 0.5); }},
      {"polynomial", [](Step s) { return polynomial_schedule(s, {.lr = kLr, .steps = 12}, 2.5); }},
      {"cosine_restarts",
       [](Step s) {
         return cosine_restarts_schedule(s, {.lr = kLr, .first = 3, .factor = 2, .end_lr = 0.05});
       }},
      {"cosine_restarts_even",
       [](Step s) { return cosine_restarts_schedule(s, {.lr = kLr, .first = 4}); }},
      {"one_cycle", [=](Step s) { return one_cycle_schedule(s, cycle); }},
      {"one_cycle_linear", [=](Step s) { return one_cycle_schedule(s, linear); }},
      {"one_cycle_three_phase", [=](Step s) { return one_cycle_schedule(s, three_phase); }},
  };
}

TEST(Schedule, HasTorchsRates) {
  const testing::Safetensors file("torch_nn/schedules.safetensors");
  EXPECT_EQ(file.names("").size(), torchs_schedules().size() + 3);
  for (const auto& [name, schedule] : torchs_schedules()) {
    const std::vector<float> rates = file.elements<float>(name);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(schedule(step), rates[step], 1e-7 * kLr) << name << ", step " << step;
    }
  }
}

TEST(Schedule, StaysAtTheEndOfTheCycle) {
  const OneCycleOptions cycle{.max_lr = 1, .steps = 10};
  EXPECT_DOUBLE_EQ(one_cycle_schedule(1000, cycle), one_cycle_schedule(9, cycle));
  EXPECT_NEAR(one_cycle_schedule(9, cycle), 1 / 25.0 / 1e4, 1e-15);
}

TEST(Schedule, RefusesWhatTorchRefuses) {
  expect_error(Errc::invalid_argument, {"constant_schedule: factor = 2"},
               [] { constant_schedule(0, 1, 2); });
  expect_error(Errc::invalid_argument, {"the milestones don't ascend"}, [] {
    multi_step_schedule(0, 1, std::array<std::uint64_t, 2>{5, 3});
  });
  expect_error(Errc::invalid_argument, {"cosine_restarts_schedule: first = 0"},
               [] { cosine_restarts_schedule(0, {}); });
  expect_error(Errc::invalid_argument, {"one_cycle_schedule: steps = 0"},
               [] { one_cycle_schedule(0, {}); });
}

void expect_plateau_as_torch(const std::string& name, const PlateauSchedule::Options& options) {
  const testing::Safetensors file("torch_nn/schedules.safetensors");
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  const std::vector<float> metrics = file.elements<float>("metrics");
  const std::vector<float> rates = file.elements<float>(name);
  PlateauSchedule schedule(options);
  EXPECT_NEAR(schedule.lr(), options.lr, 1e-7 * kLr);
  for (std::size_t step = 0; step < metrics.size(); ++step) {
    EXPECT_NEAR(schedule.step(metrics[step]), rates[step], 1e-6 * kLr) << name << ", step " << step;
    if (step % 3 == 0) sync();
    EXPECT_NEAR(schedule.lr(), rates[step], 1e-6 * kLr);
  }
}

TEST(PlateauSchedule, HasTorchsRates) {
  expect_plateau_as_torch("plateau", {.lr = kLr, .patience = 2});
  expect_plateau_as_torch("plateau_max", {.lr = kLr,
                                          .mode = PlateauSchedule::Mode::max,
                                          .factor = 0.5,
                                          .patience = 1,
                                          .threshold = 0.02,
                                          .threshold_mode = PlateauSchedule::Threshold::abs,
                                          .cooldown = 2,
                                          .min_lr = 0.06});
}

TEST(PlateauSchedule, GoesOnFromItsState) {
  testing::InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  PlateauSchedule before({.lr = 1, .patience = 1});
  before.step(3);
  before.step(4);
  sync();
  PlateauSchedule after({.lr = 1, .patience = 1});
  Parameter state = after.state()[0];
  EXPECT_EQ(state.name(), "plateau.state");
  state.assign(to_device(before.state()[0].to_vector(), state.shape()));
  EXPECT_NEAR(after.step(4), 0.1, 1e-7);
}

TEST(PlateauSchedule, RefusesWhatTorchRefuses) {
  expect_error(Errc::invalid_argument, {"PlateauSchedule: factor = 1"},
               [] { PlateauSchedule({.factor = 1}); });
  expect_error(Errc::invalid_argument, {"patience = -1"},
               [] { PlateauSchedule({.patience = -1}); });
}

TEST(Schedule, OneCycleMayRiseInNoTime) {
  EXPECT_EQ(one_cycle_schedule(0, {.max_lr = 0.5, .steps = 100, .warmup_share = 0.01}), 0.5);
}

}  // namespace
}  // namespace weft::learning_rates_test
