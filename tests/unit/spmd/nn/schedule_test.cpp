#include <weft/schedule.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::schedule_test {
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

}  // namespace
}  // namespace weft::schedule_test
