#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"
#include "tests/support/scheduled.hpp"

namespace weft::donate_test {
namespace {

/// Tests whether an update may overwrite its state: a program updates x, which has 6 elements.
class Donate : public ::testing::Test {
 protected:
  ValueId add(ValueId a, ValueId b) { return b_.binary(OpKind::add, a, b); }
  ValueId total(ValueId x) { return b_.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}); }
  ValueId spread(ValueId scalar) { return b_.broadcast_in_dim(scalar, {6}, {}); }
  bool donated(ValueId update) {
    program_.outputs.clear();
    program_.add_output(update, "x", {}, 0);
    return testing::scheduled(program_).donated.at(0);
  }

  Program program_;
  Builder b_{program_};
  ValueId x_ = program_.add_input({DType::f32, {6}}, InputKind::param, "x", {});
  ValueId scalar_ = program_.add_input({DType::f32, {}}, InputKind::param, "s", {});
};

TEST_F(Donate, AnElementwiseUpdateReadsEachElementBeforeItWritesIt) {
  EXPECT_TRUE(donated(add(x_, add(x_, x_))));
}

TEST_F(Donate, OtherOpsMayReadItBefore) { EXPECT_TRUE(donated(add(x_, spread(total(x_))))); }

TEST_F(Donate, NobodyMayReadItAfterwards) {
  const ValueId update = add(x_, x_);
  total(x_);
  EXPECT_FALSE(donated(update));
}

/// The loop runs tile by tile: its last op would write tile 0 of x before its first op reads tile
/// 1. But the update here is an earlier op, so a later one would read overwritten elements.
TEST_F(Donate, NorALaterOpOfItsLoop) {
  const ValueId update = add(x_, x_);
  add(update, x_);
  EXPECT_FALSE(donated(update));
}

TEST_F(Donate, AnOpThatIsNotElementwiseReadsWhatItHasWrittenOver) {
  EXPECT_FALSE(donated(b_.reverse(x_, std::array<std::int64_t, 1>{0})));
  const CustomTarget custom{"op", "s -> s"};
  EXPECT_FALSE(donated(b_.custom_call(custom, std::array{x_}, program_.type(x_))));
}

TEST_F(Donate, AFillIsMadeByEachLoopThatReadsIt) {
  const ValueId filled = spread(scalar_);
  const ValueId update = add(scalar_, scalar_);
  add(x_, filled);
  program_.outputs.clear();
  program_.add_output(update, "s", {}, 1);
  EXPECT_FALSE(testing::scheduled(program_).donated.at(0));
}

/// The fill is stored before the loop that reads x has read all of it.
TEST_F(Donate, NorAFillThatIsStoredInTheMiddleOfALoop) {
  const ValueId product = add(x_, x_);
  const ValueId filled = spread(scalar_);
  program_.add_output(add(product, filled), "y", {});
  program_.add_output(filled, "x", {}, 0);
  EXPECT_FALSE(testing::scheduled(program_).donated.at(1));
}

TEST_F(Donate, NothingIsWhatUpdatesNothingOrIsAnInput) {
  program_.add_output(add(x_, x_), "y", {});
  program_.add_output(x_, "x", {}, 0);
  EXPECT_EQ(testing::scheduled(program_).donated, std::vector<bool>(2, false));
}

}  // namespace
}  // namespace weft::donate_test
