#include <weft/actors/trainer/hang_watch.hpp>

#include <gtest/gtest.h>

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{1000};

ActorRow device(int worker, std::uint64_t step, int waiting_for = -1) {
  ActorRow row;
  row.kind = ActorKind::device;
  row.state = ActorState::running;
  row.worker = row.chip = worker;
  row.step = step;
  row.waiting_for = waiting_for;
  return row;
}

class HangWatchTest : public ::testing::Test {
 protected:
  std::vector<int> observe(const std::vector<ActorRow>& rows, milliseconds at,
                           const std::vector<int>& awaited = {}) {
    return watch.observe(rows, awaited, HangWatch::Time() + at);
  }
  HangWatch watch{kTimeout};
};

/// Chip 0 waits for chip 1, which waits for chip 2, which waits for nobody.
TEST_F(HangWatchTest, NamesTheOneAtTheEndOfTheWaits) {
  const std::vector<ActorRow> rows{device(0, 7, 1), device(1, 7, 2), device(2, 6)};
  EXPECT_TRUE(observe(rows, milliseconds(0)).empty());
  EXPECT_TRUE(observe(rows, milliseconds(999)).empty());
  EXPECT_EQ(observe(rows, milliseconds(1000)), std::vector{2});
}

TEST_F(HangWatchTest, OneThatMovesDoesNotHang) {
  observe({device(0, 7, 1), device(1, 6)}, milliseconds(0));
  observe({device(0, 7, 1), device(1, 7)}, milliseconds(900));
  EXPECT_TRUE(observe({device(0, 7, 1), device(1, 7)}, milliseconds(1500)).empty());
  EXPECT_EQ(observe({device(0, 7, 1), device(1, 7)}, milliseconds(1900)), std::vector{1});
}

TEST_F(HangWatchTest, OneThatNobodyWaitsForMayStandStill) {
  const std::vector<ActorRow> rows{device(0, 7), device(1, 6)};
  observe(rows, milliseconds(0));
  EXPECT_TRUE(observe(rows, milliseconds(5000)).empty());
  EXPECT_EQ(observe(rows, milliseconds(5001), {1}), std::vector{1}) << "the trainer waits for it";
}

TEST_F(HangWatchTest, ForgetsWhatWasBeforeAGeneration) {
  const std::vector<ActorRow> rows{device(0, 7, 1), device(1, 6)};
  observe(rows, milliseconds(0));
  watch.forget();
  EXPECT_TRUE(observe(rows, milliseconds(1000)).empty());
  EXPECT_EQ(observe(rows, milliseconds(2000)), std::vector{1});
}

}  // namespace
}  // namespace weft
