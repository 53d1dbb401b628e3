#include "spmd/fusion/spread.hpp"

#include <gtest/gtest.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/fusion/fuse.hpp"
#include "spmd/ops/builder.hpp"
#include "tests/support/scheduled.hpp"

namespace weft::spread_test {
namespace {

class SpreadTest : public ::testing::Test {
 protected:
  using Dims = std::vector<std::int64_t>;

  ValueId input(const Shape& shape) {
    return program_.add_input({DType::f32, shape}, InputKind::param, "x", {});
  }
  std::optional<Spread> of(const Shape& from, const Shape& to, const Dims& dims) {
    const ValueId value = b_.broadcast_in_dim(input(from), to, dims);
    return spread_of(program_, program_.defining_op(value));
  }

  Program program_;
  Builder b_{program_};
};

TEST_F(SpreadTest, IsAMatrixOfEqualRowsOrOfRowsOfEqualElements) {
  EXPECT_EQ(of({64}, {8, 64}, {1}), (Spread{.rows = 8, .columns = 64, .repeats_row = true}));
  EXPECT_EQ(of({64}, {2, 4, 64}, {2}), (Spread{.rows = 8, .columns = 64, .repeats_row = true}));
  EXPECT_EQ(of({4, 8}, {6, 4, 8}, {1, 2}), (Spread{.rows = 6, .columns = 32, .repeats_row = true}));
  EXPECT_EQ(of({8}, {8, 64}, {0}), (Spread{.rows = 8, .columns = 64, .repeats_row = false}));
  EXPECT_EQ(of({8, 1}, {8, 64}, {0, 1}), (Spread{.rows = 8, .columns = 64, .repeats_row = false}));
  EXPECT_EQ(of({2, 4}, {2, 4, 1, 64}, {0, 1}),
            (Spread{.rows = 8, .columns = 64, .repeats_row = false}));
}

TEST_F(SpreadTest, IsNoOtherBroadcast) {
  EXPECT_EQ(of({64}, {8, 64, 2}, {1}), std::nullopt);  // repeats neither whole rows nor elements
  EXPECT_EQ(of({8, 2}, {8, 64, 2}, {0, 2}), std::nullopt);  // repeats rows and elements
  EXPECT_EQ(of({8}, {64, 8}, {1}), std::nullopt);           // has short rows
  EXPECT_EQ(of({64}, {64}, {0}), std::nullopt);             // repeats nothing
  EXPECT_EQ(of({}, {64}, {}), std::nullopt);                // is a fill
}

TEST_F(SpreadTest, OfACarryIsStored) {
  const ValueId loop = b_.loop(3, false);
  const ValueId carry = b_.border(OpKind::carry, {loop, input({64})});
  const ValueId rows = b_.broadcast_in_dim(carry, {8, 64}, Dims{1});
  EXPECT_EQ(spread_of(program_, program_.defining_op(rows)), std::nullopt);
}

TEST_F(SpreadTest, HasNoPlaceIfOnlyElementwiseOpsReadIt) {
  const ValueId x = input({8, 64});
  const ValueId rows = b_.broadcast_in_dim(input({64}), {8, 64}, Dims{1});
  const ValueId also_reduced = b_.broadcast_in_dim(input({64}), {8, 64}, Dims{1});
  const ValueId y = b_.binary(OpKind::add, b_.binary(OpKind::add, x, rows), also_reduced);
  program_.add_output(y, "y", {});
  program_.add_output(b_.reduce(ReduceKind::add, also_reduced, Dims{0}), "sums", {});
  const std::vector<bool> tiled = tiled_values(program_, kCpuTarget);
  EXPECT_TRUE(tiled[rows]);
  EXPECT_FALSE(tiled[also_reduced]);
}

/// The update's loop reads the spread's operand itself, so the update can't overwrite the operand.
TEST_F(SpreadTest, KeepsAnUpdateFromItsOperandsPlace) {
  const ValueId bias = input({64});
  const ValueId rows = b_.broadcast_in_dim(bias, {8, 64}, Dims{1});
  const ValueId update = b_.binary(OpKind::add, bias, bias);
  program_.add_output(update, "x", {}, 0);
  EXPECT_TRUE(testing::scheduled(program_).donated.at(0));
  program_.add_output(b_.binary(OpKind::add, input({8, 64}), rows), "y", {});
  EXPECT_FALSE(testing::scheduled(program_).donated.at(0));
}

}  // namespace
}  // namespace weft::spread_test
