#include "actors/supervision/report_filter.hpp"

#include <gtest/gtest.h>

namespace weft::report_filter_test {
namespace {

Report report(std::uint64_t generation, std::uint64_t step, std::uint32_t number,
              std::string metrics, std::string checkpoint = {}) {
  return {.worker = 0,
          .generation = generation,
          .step = step,
          .number = number,
          .metrics = std::move(metrics),
          .checkpoint = std::move(checkpoint)};
}

TEST(ReportFilter, LetsAllOfTheFirstGenerationThrough) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "same")));
  EXPECT_TRUE(filter.is_new(report(1, 0, 1, "same")));
  EXPECT_TRUE(filter.is_new(report(1, 1, 0, "same")));
  EXPECT_EQ(filter.count(), 3U);
}

TEST(ReportFilter, AStepThatIsTakenAgainReportsOnce) {
  ReportFilter filter;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    EXPECT_TRUE(filter.is_new(report(1, step, 0, "loss " + std::to_string(step))));
  }
  filter.begin_generation(2, 4);
  EXPECT_FALSE(filter.is_new(report(2, 5, 0, "loss 5")));
  EXPECT_FALSE(filter.is_new(report(2, 6, 0, "took 7 ms"))) << "whatever it says";
  EXPECT_TRUE(filter.is_new(report(2, 6, 1, "one more")));
  EXPECT_TRUE(filter.is_new(report(2, 7, 0, "loss 7")));
  EXPECT_EQ(filter.count(), 10U) << "new or not";
}

/// The worker died while its reports were under way. The next process sends them again from the
/// log.
TEST(ReportFilter, TakesWhatComesLateFromAnEarlierGeneration) {
  ReportFilter filter;
  EXPECT_TRUE(filter.is_new(report(1, 3, 0, "loss")));
  filter.begin_generation(2, 4);
  EXPECT_TRUE(filter.is_new(report(1, 4, 0, "loss")));
  EXPECT_TRUE(filter.is_new(report(1, 5, 0, "loss")));
  EXPECT_FALSE(filter.is_new(report(1, 5, 0, "loss")));
  EXPECT_FALSE(filter.is_new(report(2, 5, 0, "loss")));
}

TEST(ReportFilter, WhatALoopReportsBeforeItsStepsIsKnownByItsMetrics) {
  ReportFilter filter;
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "parameters: 1000")));
  EXPECT_TRUE(filter.is_new(report(1, 5, 0, "loss 5")));
  filter.begin_generation(2, 5);
  EXPECT_FALSE(filter.is_new(report(2, 5, 0, "parameters: 1000")));
  EXPECT_TRUE(filter.is_new(report(2, 5, 1, "continues")));
  EXPECT_TRUE(filter.is_new(report(2, 5, 2, "continues"))) << "made twice in this generation";
  EXPECT_FALSE(filter.is_new(report(2, 5, 3, "loss 5")));
  filter.begin_generation(3, 5);
  EXPECT_FALSE(filter.is_new(report(3, 5, 0, "parameters: 1000")));
  EXPECT_FALSE(filter.is_new(report(3, 5, 1, "continues")));
}

TEST(ReportFilter, ANewReportAtTheStepTakesNoOthersPlace) {
  ReportFilter filter;
  EXPECT_TRUE(filter.is_new(report(1, 5, 0, "a")));
  filter.begin_generation(2, 5);
  EXPECT_TRUE(filter.is_new(report(2, 5, 0, "b")));
  filter.begin_generation(3, 4);
  EXPECT_FALSE(filter.is_new(report(3, 5, 0, "a")));
  EXPECT_FALSE(filter.is_new(report(3, 5, 1, "b")));
  EXPECT_TRUE(filter.is_new(report(3, 5, 2, "c")));
}

TEST(ReportFilter, ACheckpointIsPartOfWhatWasReported) {
  ReportFilter filter;
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "{}", "checkpoint_000000")));
  filter.begin_generation(2, 0);
  EXPECT_FALSE(filter.is_new(report(2, 0, 0, "{}", "checkpoint_000000")));
  EXPECT_TRUE(filter.is_new(report(2, 0, 1, "{}", "checkpoint_000001")));
}

/// If only one version of the state is kept, the loop continues from a checkpoint, and the report
/// that follows the checkpoint is made again with another text.
TEST(ReportFilter, TheLastReportMadeAgainBehindACheckpointCountsOnce) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 8, 0, "loss")));
  EXPECT_TRUE(filter.is_new(report(1, 8, 1, "{}", "checkpoint_000008")));
  EXPECT_TRUE(filter.is_new(report(1, 8, 2, "took 7 ms")));
  filter.begin_generation(2, 8, "checkpoint_000008");
  EXPECT_FALSE(filter.is_new(report(2, 8, 0, "took 9 ms")));
  EXPECT_TRUE(filter.is_new(report(2, 8, 1, "took 9 ms in all")));
  filter.begin_generation(3, 8, "checkpoint_000008");
  EXPECT_FALSE(filter.is_new(report(3, 8, 0, "took 8 ms")));
  EXPECT_FALSE(filter.is_new(report(3, 8, 1, "took 8 ms in all")));
  EXPECT_TRUE(filter.is_new(report(3, 9, 0, "took 8 ms")));
}

TEST(ReportFilter, AGreetingTakesNoPlaceBehindACheckpoint) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "parameters: 1000")));
  EXPECT_TRUE(filter.is_new(report(1, 8, 0, "{}", "checkpoint_000008")));
  EXPECT_TRUE(filter.is_new(report(1, 8, 1, "took 7 ms")));
  filter.begin_generation(2, 8, "checkpoint_000008");
  EXPECT_FALSE(filter.is_new(report(2, 8, 0, "parameters: 1000")));
  EXPECT_FALSE(filter.is_new(report(2, 8, 1, "took 9 ms")));
  EXPECT_TRUE(filter.is_new(report(2, 8, 2, "one more")));
}

TEST(ReportFilter, ACheckpointMadeAgainCountsOnceWhateverItsMetrics) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 8, 0, "took 7 ms", "checkpoint_000008")));
  filter.begin_generation(2, 8, "checkpoint_000008");
  EXPECT_FALSE(filter.is_new(report(2, 8, 0, "took 9 ms", "checkpoint_000008")));
}

TEST(ReportFilter, WhatALoopReportsBeforeItsFirstStepOfAllIsKnownByItsPlace) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "at 12:00")));
  filter.begin_generation(2, 0);
  EXPECT_FALSE(filter.is_new(report(2, 0, 0, "at 12:01")));
  EXPECT_TRUE(filter.is_new(report(2, 0, 1, "at 12:02")));
}

TEST(ReportFilter, PassesEveryReportOfALongRunAndRemembersItsEnd) {
  constexpr std::uint64_t kSteps = 100'000;
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 0, 0, "parameters: 1000")));
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    ASSERT_TRUE(filter.is_new(report(1, step, 0, std::to_string(step)))) << step;
  }
  filter.begin_generation(2, kSteps - 1);
  EXPECT_FALSE(filter.is_new(report(2, kSteps - 1, 0, "parameters: 1000")));
  EXPECT_FALSE(filter.is_new(report(2, kSteps, 0, "again")));
  EXPECT_TRUE(filter.is_new(report(2, kSteps + 1, 0, "on")));
}

/// A loop that resumes in the middle of a step numbers the step's further reports from 0 again.
TEST(ReportFilter, PassesWhatAnEarlierGenerationReportedAtItsFirstStep) {
  ReportFilter filter;
  filter.begin_generation(1, 0);
  EXPECT_TRUE(filter.is_new(report(1, 1, 0, "after step 0")));
  // Generation 2 continues at step 1 and reports in the middle of that step. The report is lost,
  // and is sent again from the log after generation 3 has begun.
  filter.begin_generation(2, 1);
  filter.begin_generation(3, 2);
  EXPECT_TRUE(filter.is_new(report(2, 1, 0, "in step 1")));
  EXPECT_TRUE(filter.is_new(report(2, 2, 0, "after step 1")));
  EXPECT_FALSE(filter.is_new(report(3, 2, 0, "after step 1")));
}

}  // namespace
}  // namespace weft::report_filter_test
