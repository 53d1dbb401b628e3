#include "tools/weft/launch/progress.hpp"

#include <gtest/gtest.h>

#include "tools/weft/launch/job_watch.hpp"
#include "tools/weft/launch/result_file.hpp"
#include "tools/weft/launch/timeout.hpp"

namespace weft::progress_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Progress::Clock::time_point kBegin{};

TEST(Progress, HasNothingToSayBeforeThereIsAJob) { EXPECT_EQ(Progress(0).line(80), ""); }

TEST(Progress, SaysStepRateLossAndChips) {
  Progress progress(0);
  progress.add({.name = "digits", .step = 100, .chips = 16}, kBegin);
  EXPECT_EQ(progress.line(80), "digits  step 100  16 chips");
  progress.add({.name = "digits", .step = 278, .chips = 16, .loss = 0.31},
               kBegin + milliseconds(200));
  EXPECT_EQ(progress.line(80), "digits  step 278  890 steps/s  loss 0.31  16 chips");
  EXPECT_EQ(progress.line(16), "digits  step 278");
}

TEST(Progress, SaysTheTimeLeftWhereTheStepsAreKnown) {
  Progress progress(1000);
  progress.add({.name = "a", .step = 0, .chips = 1}, kBegin);
  progress.add({.name = "a", .step = 20, .chips = 1}, kBegin + seconds(2));
  EXPECT_EQ(progress.line(80), "a  step 20  10.0 steps/s  1 chip  ETA 1:38");
  Progress slow(100'000);
  slow.add({.name = "a", .step = 0, .chips = 2}, kBegin);
  slow.add({.name = "a", .step = 1, .chips = 2}, kBegin + seconds(4));
  EXPECT_EQ(slow.line(80), "a  step 1  4.0 s/step  2 chips  ETA 111:06:36");
}

TEST(Progress, TakesTheRateOfTheLastSeconds) {
  Progress progress(0);
  for (int second = 0; second <= 60; ++second) {
    const auto step = static_cast<std::uint64_t>(second < 50 ? second : 50 + 100 * (second - 50));
    progress.add({.name = "a", .step = step, .chips = 1}, kBegin + seconds(second));
  }
  EXPECT_NE(progress.line(80).find("  100 steps/s"), std::string::npos) << progress.line(80);
}

TEST(Progress, BeginsAnewWhereTheProgramDoes) {
  Progress progress(0);
  progress.add({.name = "a", .step = 900, .chips = 1}, kBegin);
  progress.add({.name = "a", .step = 10, .chips = 1}, kBegin + seconds(1));
  EXPECT_EQ(progress.line(80), "a  step 10  1 chip");
}

TEST(ReportedEnd, HasCodeFolderAndMessage) {
  const ReportedEnd end = parse_reported_end("137\n/runs/a\nworker 1 was killed\n");
  EXPECT_EQ(end.code, 137);
  EXPECT_EQ(end.folder, "/runs/a");
  EXPECT_EQ(end.message, "worker 1 was killed");
}

TEST(ReportedEnd, TakesWhatIsThere) {
  EXPECT_EQ(parse_reported_end("").code, 0);
  EXPECT_EQ(parse_reported_end("9\n").code, 9);
  EXPECT_EQ(parse_reported_end("9\n").message, "");
  EXPECT_EQ(parse_reported_end("9999").code, 1);
  EXPECT_EQ(parse_reported_end("x\n").code, 0);
}

TEST(Timeout, AsksTwiceAndThenKills) {
  Timeout timeout(2.5, kBegin);
  EXPECT_EQ(timeout.due(kBegin + seconds(2)), std::nullopt);
  EXPECT_FALSE(timeout.is_over());
  EXPECT_EQ(timeout.due(kBegin + milliseconds(2500)), SIGTERM);
  EXPECT_TRUE(timeout.is_over());
  const auto second = timeout.deadline().value();
  EXPECT_EQ(timeout.due(second - milliseconds(1)), std::nullopt);
  EXPECT_EQ(timeout.due(second), SIGTERM);
  const auto third = timeout.deadline().value();
  EXPECT_EQ(timeout.due(third), SIGKILL);
  EXPECT_EQ(timeout.deadline(), std::nullopt);
  EXPECT_EQ(timeout.due(third + seconds(100)), std::nullopt);
}

TEST(Timeout, NeverComesWhereNoneIsSet) {
  Timeout timeout(0, kBegin);
  EXPECT_EQ(timeout.deadline(), std::nullopt);
  EXPECT_EQ(timeout.due(kBegin + std::chrono::hours(1000)), std::nullopt);
}

}  // namespace
}  // namespace weft::progress_test
