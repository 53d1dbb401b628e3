#include "actors/host/step_teller.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::step_teller_test {
namespace {

class StepTellers : public ::testing::Test {
 protected:
  StepTellers() { board_.worker(0).open(ActorKind::worker, 0, -1, ::getpid()); }
  /// Looks when `intervals` intervals have passed since the loops began.
  std::optional<std::uint64_t> look(StepTeller& teller, int intervals) const {
    return teller.look(begin_ + (intervals + 1) * StepTeller::kInterval);
  }

  const Board board_ = Board::anonymous({.job = "j", .num_chips = 0});
  const StepTeller::Clock::time_point begin_ = StepTeller::Clock::now();
};

TEST_F(StepTellers, TellAStepOnceInAnInterval) {
  StepTeller teller(board_, true);
  board_.worker(0).step(3);
  EXPECT_FALSE(look(teller, 1)) << "the loops haven't begun";
  teller.begin(0);
  EXPECT_EQ(look(teller, 1), 3U);
  board_.worker(0).step(4);
  EXPECT_FALSE(teller.look(*teller.deadline() - std::chrono::milliseconds(1)));
  EXPECT_EQ(look(teller, 2), 4U);
  EXPECT_FALSE(look(teller, 3)) << "there is no new step";
}

TEST_F(StepTellers, TellOnlyStepsThatGrow) {
  StepTeller teller(board_, true);
  teller.begin(5);
  board_.worker(0).step(5);
  EXPECT_FALSE(look(teller, 1)) << "the checkpoint's step";
  board_.worker(0).step(9);
  EXPECT_EQ(look(teller, 2), 9U);
  board_.worker(0).step(7);  // the loop runs again from there
  EXPECT_FALSE(look(teller, 3));
  EXPECT_EQ(teller.last(12), 12U);
  EXPECT_FALSE(teller.last(12));
}

TEST_F(StepTellers, LookAtNothingIfNobodyHears) {
  StepTeller teller(board_, false);
  teller.begin(0);
  board_.worker(0).step(3);
  EXPECT_FALSE(teller.deadline());
  EXPECT_FALSE(look(teller, 1));
}

}  // namespace
}  // namespace weft::step_teller_test
