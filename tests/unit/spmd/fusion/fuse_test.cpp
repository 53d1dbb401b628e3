#include "spmd/fusion/fuse.hpp"

#include <gtest/gtest.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/plan/lifetime.hpp"
#include "tests/support/scheduled.hpp"

namespace weft::fuse_test {
namespace {

class Fuse : public ::testing::Test {
 protected:
  ValueId input(const Shape& shape) {
    return program_.add_input({DType::f32, shape}, InputKind::data, "x", {});
  }
  ValueId add(ValueId a, ValueId b) { return b_.binary(OpKind::add, a, b); }
  ValueId fill(double element) { return b_.constant(element, {DType::f32, {6}}); }
  ValueId spread(ValueId scalar) { return b_.broadcast_in_dim(scalar, {6}, {}); }
  ValueId sum(ValueId x) { return b_.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0}); }
  void output(ValueId value) { program_.add_output(value, "y", {}); }

  /// Returns the first op and the number of ops of each loop: "2+3 6+1" means ops 2 to 4, and op 6.
  std::string loops() const {
    std::string text;
    for (const auto [first, count] : fused_loops(program_, kCpuTarget)) {
      text += fmt::format("{}{}+{}", text.empty() ? "" : " ", first, count);
    }
    return text;
  }
  std::vector<ValueId> tiled() const {
    const std::vector<bool> is_tiled = tiled_values(program_, kCpuTarget);
    std::vector<ValueId> values;
    for (ValueId value = 0; value < is_tiled.size(); ++value) {
      if (is_tiled[value]) values.push_back(value);
    }
    return values;
  }

  Program program_;
  Builder b_{program_};
  ValueId x_ = input({6});
  ValueId scalar_ = input({});
};

TEST_F(Fuse, ALoopGoesOverFillsButNotOverOtherOpsOrSizes) {
  const ValueId y = add(x_, x_);             // op 0
  const ValueId z = add(y, fill(2));         // ops 1 and 2
  const ValueId total = sum(z);              // op 3
  const ValueId root = add(scalar_, total);  // op 4
  const ValueId w = add(x_, spread(root));   // ops 5 and 6
  output(b_.reshape(add(w, w), {2, 3}));     // ops 7 and 8
  EXPECT_EQ(loops(), "0+3 4+1 6+2");
}

TEST_F(Fuse, ALoopEndsBeforeAFillOfWhatItComputes) {
  const ValueId one = input({1});
  const ValueId y = b_.binary(OpKind::add, scalar_, scalar_);
  output(add(b_.broadcast_in_dim(y, {1}, {}), one));
  EXPECT_EQ(loops(), "0+1 2+1");
}

TEST_F(Fuse, WhatOnlyOneLoopReadsHasNoPlace) {
  const ValueId y = add(x_, x_);
  const ValueId two = fill(2);
  const ValueId z = add(y, two);
  const ValueId total = sum(z);
  const ValueId all = spread(total);
  const ValueId w = add(all, two);
  const ValueId kept = fill(3);
  output(add(w, kept));
  output(kept);
  // z isn't in a tile because it is reduced; `kept` and the last sum aren't because they are
  // outputs.
  EXPECT_EQ(tiled(), (std::vector<ValueId>{y, two, all, w}));
}

TEST_F(Fuse, ABufferIsUsedAgainOnceItsTileIsRead) {
  const ValueId two = fill(2);
  const ValueId a = add(x_, two);
  const ValueId b = add(a, a);
  const ValueId c = add(b, two);
  output(add(c, x_));
  const std::vector<TileBuffers::Entry> expected{{two, 0}, {a, 1}, {b, 2}, {c, 1}};
  const std::vector<bool> tiled = tiled_values(program_, kCpuTarget);
  EXPECT_EQ(TileBuffers(program_, tiled).of(fused_loops(program_, kCpuTarget).at(0)), expected);
}

TEST_F(Fuse, WhatALoopReadsOrMakesLivesThroughAllOfIt) {
  const ValueId total = sum(x_);      // op 0
  const ValueId all = spread(total);  // op 1
  const ValueId y = add(x_, x_);      // op 2
  const ValueId z = add(y, all);      // op 3
  output(sum(y));                     // op 4
  output(sum(z));                     // op 5
  const Plan plan = testing::scheduled(program_);
  const auto lifetimes = lifetimes_of(plan.program, plan.steps, plan.slots);
  EXPECT_EQ(lifetimes[x_].last, 3U);
  EXPECT_EQ(lifetimes[total].last, 3U);
  EXPECT_EQ(lifetimes[y].first, 2U);
  EXPECT_EQ(lifetimes[z].first, 2U);
  EXPECT_EQ(lifetimes[z].last, 5U);
}

}  // namespace
}  // namespace weft::fuse_test
