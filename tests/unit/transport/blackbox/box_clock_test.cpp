#include "transport/blackbox/box_clock.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace weft::box_clock_test {
namespace {

constexpr auto kCounter = TickSource::processor;

TEST(TickScale, InterpolatesBetweenTwoPairs) {
  const TickScale scale(kCounter, {{1000, 100, 5100}, {3000, 1100, 6100}, {4000, 2100, 7100}});
  EXPECT_EQ(scale.monotonic_ns(1000), 100);
  EXPECT_EQ(scale.monotonic_ns(2000), 600);
  EXPECT_EQ(scale.monotonic_ns(3500), 1600);
}

TEST(TickScale, GoesOnAtTheirRateBeforeAndAfterThem) {
  const TickScale scale(kCounter, {{1000, 100, 0}, {3000, 1100, 0}});
  EXPECT_EQ(scale.monotonic_ns(0), -400);
  EXPECT_EQ(scale.monotonic_ns(5000), 2100);
  EXPECT_EQ(scale.duration_ns(500), 250U);
}

TEST(TickScale, LeavesOutPairsThatGoBack) {
  const TickScale scale(kCounter, {{1000, 100, 0}, {2000, 50, 0}, {2000, 600, 0}, {3000, 1100, 0}});
  EXPECT_EQ(scale.monotonic_ns(2000), 600);
}

TEST(TickScale, TakesTicksForNanosecondsWhereNothingElseIsKnown) {
  EXPECT_EQ(TickScale(kCounter, {}).monotonic_ns(77), 77);
  EXPECT_EQ(TickScale(kCounter, {{1000, 100, 0}}).monotonic_ns(1077), 177);
  EXPECT_EQ(TickScale(TickSource::monotonic, {{1, 100, 0}, {2, 1100, 0}}).monotonic_ns(77), 77);
}

TEST(TickScale, TellsTheTimeOfDay) {
  const TickScale scale(kCounter, {{0, 100, 5100}, {1, 200, 5300}});
  EXPECT_EQ(scale.realtime_ns(150), 5150);
  EXPECT_EQ(scale.realtime_ns(250), 5350);
  EXPECT_EQ(scale.realtime_ns(0), 5000);
}

TEST(TickScale, TakesWhatNobodyWrites) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  const TickScale scale(kCounter, {{0, kMin, kMax}, {1, kMax, kMin}});
  for (const std::uint64_t tick : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    scale.realtime_ns(scale.monotonic_ns(tick));
  }
  EXPECT_GT(scale.duration_ns(~std::uint64_t{0}), 0U);
}

TEST(ReadTicks, GoForward) {
  for (const TickSource source : {TickSource::monotonic, find_tick_source()}) {
    const std::uint64_t before = read_ticks(source);
    const auto pair = read_clock_pair(source);
    EXPECT_LE(before, pair.tick);
    EXPECT_LE(pair.tick, read_ticks(source));
  }
}

}  // namespace
}  // namespace weft::box_clock_test
