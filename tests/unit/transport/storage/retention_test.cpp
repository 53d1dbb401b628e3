#include "transport/storage/retention.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace weft::retention_test {
namespace {

using Best = RetentionPolicy::Best;
using Steps = std::vector<std::uint64_t>;

/// Returns the steps of the checkpoints that the policy removes, if steps 10, 20, and so on have
/// checkpoints with these ratings.
Steps going(const std::vector<std::optional<double>>& ratings, const RetentionPolicy& policy) {
  std::vector<RatedCheckpoint> checkpoints;
  for (const auto& rating : ratings) {
    checkpoints.push_back({.step = 10 * (checkpoints.size() + 1), .rating = rating});
  }
  Steps steps;
  for (const auto& checkpoint : superseded(checkpoints, policy)) steps.push_back(checkpoint.step);
  return steps;
}

TEST(Retention, KeepsTheNewest) {
  EXPECT_EQ(going({1, 2, 3, 4}, {.max_to_keep = 2}), (Steps{10, 20}));
  EXPECT_EQ(going({1, 2, 3, 4}, {.max_to_keep = 4}), Steps());
  EXPECT_EQ(going({1, 2, 3, 4}, {.max_to_keep = 0}), Steps());
  EXPECT_EQ(going({}, {.max_to_keep = 2}), Steps());
}

TEST(Retention, KeepsTheBestAndTheNewest) {
  EXPECT_EQ(going({1, 5, 3, 4}, {.max_to_keep = 1, .best = Best::min}), (Steps{20, 30}));
  EXPECT_EQ(going({1, 5, 3, 4}, {.max_to_keep = 1, .best = Best::max}), (Steps{10, 30}));
  EXPECT_EQ(going({2, 2, 2, 9}, {.max_to_keep = 1, .best = Best::min}), (Steps{10, 20}))
      << "of equally good ones the newer";
}

TEST(Best, IsTheNewestOfTheBestThatHaveARating) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<RatedCheckpoint> checkpoints{{.step = 1, .rating = 3.0},
                                                 {.step = 2, .rating = 1.0},
                                                 {.step = 3, .rating = 1.0},
                                                 {.step = 4, .rating = nan},
                                                 {.step = 5}};
  EXPECT_EQ(best_of(checkpoints, Best::min)->step, 3U);
  EXPECT_EQ(best_of(checkpoints, Best::max)->step, 1U);
  EXPECT_FALSE(best_of({checkpoints[3], checkpoints[4]}, Best::min));
  EXPECT_FALSE(best_of({}, Best::max));
}

TEST(Retention, OneWithoutARatingIsWorseThanAll) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(going({7, nan, std::nullopt, 9}, {.max_to_keep = 1, .best = Best::min}),
            (Steps{20, 30}));
  EXPECT_EQ(going({nan, std::nullopt, nan}, {.max_to_keep = 1, .best = Best::max}),
            (Steps{10, 20}));
}

TEST(Retention, KeepsMultiples) {
  EXPECT_EQ(going({1, 2, 3, 4, 5}, {.max_to_keep = 1, .keep_every = 20}), (Steps{10, 30}));
}

}  // namespace
}  // namespace weft::retention_test
