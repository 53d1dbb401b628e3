#include "actors/supervision/checkpoint_tally.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

Report report(int worker, std::uint64_t step) {
  return {.worker = worker, .step = step, .checkpoint = "at " + std::to_string(step)};
}

TEST(CheckpointTally, CountsACheckpointOnceAllWorkersHaveReportedIt) {
  CheckpointTally tally(2);
  tally.reported(report(0, 8));
  tally.reported(report(0, 8));
  tally.reported({.worker = 1, .step = 8});
  EXPECT_FALSE(tally.last());
  tally.reported(report(1, 8));
  ASSERT_TRUE(tally.last());
  EXPECT_EQ(tally.last()->step, 8U);
  EXPECT_EQ(tally.last()->path, "at 8");
  tally.reported(report(1, 16));
  EXPECT_EQ(tally.last()->step, 8U);
}

TEST(CheckpointTally, KeepsTheLatest) {
  CheckpointTally tally(2);
  tally.reported(report(0, 8));
  tally.reported(report(0, 16));
  tally.reported(report(1, 16));
  tally.reported(report(1, 8));
  EXPECT_EQ(tally.last()->step, 16U);
}

TEST(CheckpointTally, IsBoundedWhereOneWorkerAloneReports) {
  CheckpointTally tally(2);
  for (std::uint64_t step = 1; step <= 5000; ++step) tally.reported(report(0, step));
  tally.reported(report(1, 4000));
  EXPECT_FALSE(tally.last()) << "it was dropped long ago";
  tally.reported(report(1, 4999));
  ASSERT_TRUE(tally.last());
  EXPECT_EQ(tally.last()->step, 4999U);
}

TEST(CheckpointTally, ForgetsWhatIsMadeAgain) {
  CheckpointTally tally(2);
  tally.reported(report(0, 16));
  tally.begin_generation(2, 8);
  tally.reported(report(1, 16));
  EXPECT_FALSE(tally.last());
  tally.reported(report(0, 16));
  EXPECT_EQ(tally.last()->step, 16U);
}

}  // namespace
}  // namespace weft
