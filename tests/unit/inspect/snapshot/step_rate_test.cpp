#include "inspect/snapshot/step_rate.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "inspect/page/metrics.hpp"
#include "inspect/page/page_state.hpp"
#include "inspect/views/job_views.hpp"
#include "inspect/views/top_frame.hpp"
#include "inspect/why/explain.hpp"
#include "tests/unit/inspect/made_job.hpp"

namespace weft::step_rate_test {
namespace {

using testing::MadeJob;

constexpr std::int64_t kMs = 1'000'000;

/// Returns a job whose last `count` steps began `step_ns` apart, read `late_ns` after the last one
/// began.
Snapshot with_steps(int count, std::int64_t step_ns, std::int64_t late_ns) {
  Snapshot job = MadeJob(1, 1).snapshot;
  EventRing ring{.kind = RingKind::chip, .worker = 0, .chip = 0};
  for (int i = 0; i < count; ++i) {
    job.events_at_ns = 1000 * kMs + i * step_ns;
    ring.events.push_back({.at_ns = job.events_at_ns,
                           .kind = EventKind::step,
                           .number = 40 + static_cast<std::uint64_t>(i)});
  }
  job.events_at_ns += late_ns;
  job.rings.push_back(std::move(ring));
  for (ActorRow& row : job.rows) row.since_ns = row.moved_ns = job.at_ns;
  return job;
}

TEST(StepRate, IsOfTheLastTenSeconds) {
  Snapshot job = with_steps(101, 1000 * kMs, 0);
  EXPECT_DOUBLE_EQ(steps_per_second(job).value(), 1);
  // Moves all steps but the last ones far into the past.
  for (Event& event : job.rings[0].events) {
    if (event.number < 100) event.at_ns -= 500'000 * kMs;
  }
  EXPECT_DOUBLE_EQ(steps_per_second(job).value(), 1);
}

TEST(StepRate, IsOfSomeStepsWhereTheyTakeLong) {
  EXPECT_DOUBLE_EQ(steps_per_second(with_steps(3, 60'000 * kMs, 0)).value(), 1.0 / 60);
}

TEST(StepRate, FallsWhileAStepTakesLongerThanOthers) {
  const double usual = steps_per_second(with_steps(11, 100 * kMs, 50 * kMs)).value();
  EXPECT_DOUBLE_EQ(usual, 10);
  EXPECT_DOUBLE_EQ(steps_per_second(with_steps(11, 100 * kMs, 1200 * kMs)).value(), 11 / 2.2);
}

TEST(StepRate, IsUnknownWithoutTwoSteps) {
  EXPECT_FALSE(steps_per_second(MadeJob(1, 1).snapshot));
  EXPECT_FALSE(steps_per_second(with_steps(1, kMs, 0)));
}

TEST(StepRate, BeginsWithTheJobThatWasStartedAgain) {
  Snapshot job = with_steps(11, 100 * kMs, 0);
  for (Event& event : job.rings[0].events) {
    if (event.number < 45) event.number += 1000;
  }
  EXPECT_DOUBLE_EQ(steps_per_second(job).value(), 10);
}

/// `ps`, `show`, `top`, `why`, the page and /metrics must show the same number.
TEST(StepRate, IsTheSameInAllViews) {
  const Snapshot job = with_steps(31, 80 * kMs, 0);
  Snapshot before = job;
  before.at_ns -= 1;
  ++before.rows[1].step;
  const Why why = explain(before, job);
  EXPECT_NE(ps_text(std::span(&job, 1)).find(" 12.5 "), std::string::npos)
      << ps_text(std::span(&job, 1));
  EXPECT_NE(show_text(job).find("steps/s      12.5\n"), std::string::npos) << show_text(job);
  EXPECT_NE(frame({job, nullptr, why}, {.colours = false}, {}).front().find("12.5 steps/s"),
            std::string::npos);
  EXPECT_NE(to_text(why).find("12.5 steps/s"), std::string::npos) << to_text(why);
  EXPECT_NE(page_state(job, why).find("\"steps_per_s\":12.5"), std::string::npos);
  EXPECT_NE(metrics_text(job).find("weft_steps_per_second 12.5\n"), std::string::npos);
}

TEST(StepRate, OfAHungJobIsNone) {
  Snapshot job = with_steps(31, 80 * kMs, 0);
  for (ActorRow& row : job.rows) row.since_ns = row.moved_ns = job.at_ns - 60'000 * kMs;
  EXPECT_NE(show_text(job).find("steps/s      0\n"), std::string::npos) << show_text(job);
}

}  // namespace
}  // namespace weft::step_rate_test
