#include "spmd/plan/schedule.hpp"

#include <array>

#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"
#include "tests/support/chip_plan.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/transport/format/sample_plan.hpp"

namespace weft::schedule_test {
namespace {

using testing::kinds_of;

const Mesh kMesh({2, 1}, {"data", "model"});

/// A fixture with the data x of 2 x 4 elements on a chip, and the parameters w of `size` x 4
/// elements and n of one element.
class Schedule : public ::testing::Test {
 protected:
  ValueId parameter(Shape shape, const char* name) {
    return program_.add_input({DType::f32, shape}, InputKind::param, name, Sharding::closed());
  }
  ValueId add(ValueId a, ValueId b) { return b_.binary(OpKind::add, a, b); }
  ValueId reduced(ValueId x) {
    return b_.all_reduce(kMesh, x, kMesh.axis_atoms(0), ReduceKind::add);
  }
  void update(ValueId value, int input) {
    const std::string& name = program_.inputs[static_cast<std::size_t>(input)].name;
    program_.add_output(value, name, Sharding::closed(), input);
  }
  Plan plan() const { return testing::chip_plan(program_, kMesh); }

  Program program_;
  Builder b_{program_};
};

TEST_F(Schedule, TheUpdateWaitStandsBehindTheLastCollective) {
  const ValueId w = parameter({64, 64}, "w");
  update(add(w, reduced(add(w, w))), 0);
  const Plan plan = this->plan();
  EXPECT_EQ(kinds_of(plan), "loop collective update_wait loop");
  EXPECT_TRUE(plan.held.empty());
}

TEST_F(Schedule, ASmallUpdateBeforeTheLastCollectiveIsHeld) {
  const ValueId n = parameter({}, "n");
  const ValueId w = parameter({64, 64}, "w");
  const ValueId next = add(n, n);
  const ValueId gradient = reduced(add(w, b_.broadcast_in_dim(next, {64, 64}, {})));
  update(next, 0);
  update(add(w, gradient), 1);
  const Plan plan = this->plan();
  EXPECT_EQ(plan.held, std::vector<std::uint32_t>{0});
  EXPECT_EQ(plan.steps.back().kind, StepKind::loop);
  EXPECT_EQ(plan.steps[plan.steps.size() - 2].kind, StepKind::update_wait);
}

TEST_F(Schedule, ALargeUpdateBeforeTheLastCollectiveWaits) {
  const ValueId m = parameter({64, 64}, "m");
  const ValueId w = parameter({32, 32}, "w");
  update(add(m, m), 0);
  update(add(w, reduced(add(w, w))), 1);
  const Plan plan = this->plan();
  EXPECT_EQ(plan.steps.front().kind, StepKind::update_wait);
  EXPECT_TRUE(plan.held.empty());
}

TEST_F(Schedule, WithoutUpdatesNobodyWaits) {
  const ValueId w = parameter({4}, "w");
  program_.add_output(add(w, w), "y", Sharding::closed());
  EXPECT_EQ(kinds_of(plan()), "loop");
}

TEST_F(Schedule, AStoredFillComesRightBeforeItsLoop) {
  const ValueId x = parameter({4}, "x");
  const ValueId n = parameter({}, "n");
  const ValueId sum = b_.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0});
  const ValueId twice = add(x, x);
  const ValueId fill = b_.broadcast_in_dim(n, {4}, {});
  program_.add_output(sum, "sum", Sharding::closed());
  program_.add_output(fill, "fill", Sharding::closed());
  program_.add_output(add(twice, fill), "y", Sharding::closed());
  Plan plan = this->plan();
  EXPECT_EQ(plan.steps,
            (std::vector<PlanStep>{
                {StepKind::compute, 0, 1}, {StepKind::compute, 2, 1}, {StepKind::loop, 1, 3}}));
  // The fill is in memory that may belong to another value before this step.
  std::swap(plan.steps[0], plan.steps[1]);
  testing::expect_error(Errc::corrupt, {"fill 2 is made before step 1"},
                        [&] { verify(plan, kMesh); });
}

TEST_F(Schedule, ATileBufferIsOfAValueThatItsLoopHas) {
  const ValueId x = parameter({4}, "x");
  const ValueId y = parameter({2}, "y");
  const ValueId one = b_.constant(1, {DType::f32, {4}});
  const ValueId two = b_.constant(2, {DType::f32, {2}});
  program_.add_output(add(x, one), "a", Sharding::closed());
  program_.add_output(add(y, two), "b", Sharding::closed());
  Plan plan = this->plan();
  EXPECT_EQ(plan.tiles, (std::vector<TileBuffer>{{0, one, 0}, {1, two, 0}}));
  plan.tiles.insert(plan.tiles.begin() + 1, {0, two, 1});
  testing::expect_error(Errc::corrupt, {"isn't computed in this loop"},
                        [&] { verify(plan, kMesh); });
}

TEST_F(Schedule, AFillThatALoopMakesIsOfAStoredScalar) {
  const ValueId x = parameter({4}, "x");
  const ValueId scalar = b_.broadcast_in_dim(parameter({}, "n"), {}, {});
  program_.add_output(add(x, b_.broadcast_in_dim(scalar, {4}, {})), "y", Sharding::closed());
  Plan plan = this->plan();
  ASSERT_EQ(plan.steps.front(), (PlanStep{StepKind::compute, 0, 1}));
  plan.steps.erase(plan.steps.begin());
  for (TileBuffer& tile : plan.tiles) --tile.step;
  plan.slots[plan.program.result(0)] = {Place::tile, 0};
  testing::expect_error(Errc::corrupt, {"fill 1 uses", "no place"}, [&] { verify(plan, kMesh); });
}

TEST_F(Schedule, RegionsAreAligned) {
  Plan plan = sample_plan();
  plan.shared_bytes = 1;
  testing::expect_error(Errc::corrupt, {"a region has 1 bytes"}, [&] { verify(plan, kMesh); });
}

TEST_F(Schedule, TheTextNamesOpsAndTileBuffers) {
  EXPECT_EQ(steps_text(sample_plan()),
            "0: compute 0 dot_general\n"
            "1: collective 1..1 all_reduce\n"
            "2: compute 2 constant\n"
            "3: update_wait\n"
            "4: loop 3..4 multiply %5:0\n");
}

/// Damages the steps of a plan, as a plan file may be damaged.
class WrongSteps : public ::testing::Test {
 protected:
  static void refuses(std::string_view why, const std::function<void(Plan&)>& spoil) {
    Plan plan = sample_plan();
    EXPECT_NO_THROW(verify(plan, kMesh));
    spoil(plan);
    testing::expect_error(Errc::corrupt, {why}, [&] { verify(plan, kMesh); });
  }
};

TEST_F(WrongSteps, AnOpIsLeftOutOrRunTwiceOrTooEarly) {
  refuses("no step runs op 3", [](Plan& p) { p.steps.pop_back(), p.tiles.clear(); });
  refuses("but op 2 is next", [](Plan& p) { p.steps.erase(p.steps.begin() + 2); });
  refuses("runs op 0 again", [](Plan& p) { p.steps.insert(p.steps.begin(), p.steps[0]); });
  refuses("begins with op 1", [](Plan& p) { std::swap(p.steps[0], p.steps[1]); });
}

TEST_F(WrongSteps, AStepIsOfAnotherKind) {
  refuses("step 0 (collective)", [](Plan& p) { p.steps[0].kind = StepKind::collective; });
  refuses("step 1 (compute)", [](Plan& p) { p.steps[1].kind = StepKind::compute; });
  refuses("step 0 (loop)", [](Plan& p) { p.steps[0].kind = StepKind::loop; });
  refuses("step 3 (update_wait)", [](Plan& p) { p.steps[3].count = 1; });
  refuses("step 0 (compute)", [](Plan& p) { p.steps[0].count = 2; });
}

TEST_F(WrongSteps, AValueHasNoTileBufferOrAStrangersOne) {
  refuses("%5 has no tile buffer", [](Plan& p) { p.tiles.clear(); });
  refuses("wrong tile buffer, 1 of 1", [](Plan& p) { p.tiles[0].buffer = 1; });
  refuses("isn't a loop", [](Plan& p) { p.tiles.push_back({5, 5, 0}); });
  refuses("order of their steps", [](Plan& p) { p.tiles.push_back({0, 5, 0}); });
  refuses("%4 has a wrong tile buffer", [](Plan& p) { p.tiles.push_back({4, 4, 1}); });
}

TEST_F(WrongSteps, AnUpdateDoesNotWait) {
  refuses("without an update_wait", [](Plan& p) {
    p.steps.erase(p.steps.begin() + 3);
    p.tiles[0].step = 3;
  });
  refuses("are held", [](Plan& p) {
    std::swap(p.steps[3], p.steps[4]);
    p.tiles[0].step = 3;
  });
  refuses("are held", [](Plan& p) { p.held = {0}; });
  refuses("two update_waits", [](Plan& p) { p.steps.push_back({StepKind::update_wait, 0, 0}); });
}

TEST_F(WrongSteps, ABarrierStandsWhereNoneIsNeeded) {
  refuses("1 barriers", [](Plan& p) { p.steps.push_back({StepKind::barrier, 0, 0}); });
}

TEST_F(WrongSteps, DonationsAreTooFew) {
  refuses("0 donations", [](Plan& p) { p.donated.clear(); });
}

}  // namespace
}  // namespace weft::schedule_test
