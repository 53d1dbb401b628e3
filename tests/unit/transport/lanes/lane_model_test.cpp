/// Explores every schedule of the model of lanes. The mutants show that the exploration finds
/// faults.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/transport/lanes/lane_model.hpp"

namespace weft::testing::lane_model_test {
namespace {

using lane_model::Case;
using lane_model::explore_case;
using lane_model::Mutant;

void expect_sound(const Case& which) {
  const Exploration explored = explore_case(which);
  EXPECT_EQ(explored.failure, "");
  EXPECT_GT(explored.state_count, 1000U);
}

TEST(LaneModel, NoWakeIsLostAtALaneThatIsFull) {
  expect_sound({.message_count = 6});
  expect_sound({.message_count = 6, .watched_when_empty = 1});
}

TEST(LaneModel, NoMessageIsLostAtLanesThatAreWatchedInTurn) {
  expect_sound({.sender_count = 2, .message_count = 2});
  expect_sound({.sender_count = 2, .message_count = 2, .watched_when_empty = 1});
}

/// Expects that a mutant fails in this case with these words.
void expect_found(const Case& which, std::string_view words) {
  const std::string failure = explore_case(which).failure;
  EXPECT_NE(failure.find(words), std::string::npos)
      << static_cast<int>(which.mutant) << ": " << failure;
}

TEST(LaneModel, MutantsAreFoundOut) {
  for (const Mutant mutant :
       {Mutant::asks_for_sleepers_first, Mutant::sleeps_unseen, Mutant::reads_rung_late,
        Mutant::unwatches_unseen, Mutant::forgets_the_bit, Mutant::watches_before_number}) {
    expect_found({.mutant = mutant}, "the taker sleeps");
  }
  for (const Mutant mutant :
       {Mutant::looks_before_it_waits, Mutant::clears_waits_late, Mutant::reads_room_late}) {
    expect_found({.mutant = mutant}, "waits for ever");
  }
}

}  // namespace
}  // namespace weft::testing::lane_model_test
