#include "actors/launch/core_shares.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::core_shares_test {
namespace {

using Shares = std::vector<std::vector<int>>;

std::vector<CpuPlace> plain(int count) {
  std::vector<CpuPlace> cpus;
  for (int cpu = 0; cpu < count; ++cpu) cpus.push_back({.cpu = cpu, .package = 0, .core = cpu});
  return cpus;
}

TEST(CoreShares, AreEvenAndOfNeighbours) {
  EXPECT_EQ(deal_cores(plain(4), 2), (Shares{{0, 1}, {2, 3}}));
  EXPECT_EQ(deal_cores(plain(5), 3), (Shares{{0, 1}, {2, 3}, {4}}));
}

/// CPUs 0 and 2 are hardware threads of core 0, as x86 numbers them.
TEST(CoreShares, GiveNoCoreToTwoWorkers) {
  const std::vector<CpuPlace> cpus{{0, 0, 0}, {1, 0, 1}, {2, 0, 0}, {3, 0, 1}};
  EXPECT_EQ(deal_cores(cpus, 2), (Shares{{0, 2}, {1, 3}}));
}

TEST(CoreShares, StayOnAPackage) {
  const std::vector<CpuPlace> cpus{{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1, 1}};
  EXPECT_EQ(deal_cores(cpus, 2), (Shares{{0, 2}, {1, 3}}));
}

TEST(CoreShares, AreRefusedForMoreWorkersThanCores) {
  const std::vector<CpuPlace> cpus{{0, 0, 0}, {1, 0, 0}, {2, 0, 1}, {3, 0, 1}};
  testing::expect_error(Errc::invalid_argument, {"--bind cores", "3 workers on 2 cores", "-n 2"},
                        [&] { deal_cores(cpus, 3); });
}

TEST(CoreShares, AreShownAsRanges) {
  EXPECT_EQ(text_of_cpus({}), "");
  EXPECT_EQ(text_of_cpus({3}), "3");
  EXPECT_EQ(text_of_cpus({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

}  // namespace
}  // namespace weft::core_shares_test
