#include "spmd/passes/channels_last.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/canonicalize.hpp"
#include "spmd/text/text.hpp"

namespace weft::channels_last_test {
namespace {

class ChannelsLast : public ::testing::Test {
 protected:
  ValueId input(const Shape& shape) {
    return program_.add_input({DType::f32, shape}, InputKind::data, "x", {});
  }
  /// Returns a convolution of x with w[O,C,1,1].
  ValueId convolved(ValueId x, ValueId w) {
    return b_.convolution(x, w,
                          {.lhs = {0, 1, 2, 3},
                           .rhs = {1, 0, 2, 3},
                           .result = {0, 1, 2, 3},
                           .window = {WindowDim{}, WindowDim{}}});
  }
  ValueId pooled(ValueId x, const WindowDim& features = {}) {
    const WindowDim two{.size = 2, .stride = 2};
    return b_.reduce_window(x, {ReduceKind::max, {{}, features, two, two}});
  }
  void output(ValueId value) { program_.add_output(value, "y", {}); }

  /// Returns the ops of the program after the pass, or "-" if the pass moves no dims.
  std::string ops() {
    const std::optional<Program> moved = channels_last(program_);
    if (!moved) return "-";
    const Program clean = canonicalize(*moved, false);
    verify(clean, Mesh({1}, {"a"}));
    std::string text;
    for (OpId op = 0; op < clean.num_ops(); ++op) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(clean.kind(op)),
                          clean.shape(clean.result(op)).to_string());
    }
    return text;
  }

  Program program_;
  Builder b_{program_};
  ValueId x_ = input({2, 3, 8, 8});
  ValueId w_ = input({5, 3, 1, 1});
};

TEST_F(ChannelsLast, APoolReadsTheConvolutionsResultAsItLies) {
  const ValueId bias =
      b_.broadcast_in_dim(input({5}), {2, 5, 8, 8}, std::array<std::int64_t, 1>{1});
  const ValueId y = b_.binary(OpKind::add, convolved(x_, w_), bias);
  output(b_.reshape(pooled(y), {2, 80}));
  EXPECT_EQ(ops(),
            "broadcast_in_dim 2x8x8x5, convolution 2x8x8x5, add 2x8x8x5, "
            "reduce_window 2x4x4x5, transpose 2x5x4x4, reshape 2x80");
}

TEST_F(ChannelsLast, NothingIsMovedToBeMovedBack) {
  output(convolved(x_, w_));
  EXPECT_EQ(ops(), "-");
}

TEST_F(ChannelsLast, AnInputOfTwoConvolutionsIsMovedOnce) {
  output(b_.reshape(pooled(convolved(x_, w_)), {2, 80}));
  output(b_.reshape(pooled(convolved(x_, input({5, 3, 1, 1}))), {2, 80}));
  EXPECT_EQ(ops(),
            "transpose 2x8x8x3, convolution 2x8x8x5, reduce_window 2x4x4x5, "
            "transpose 2x5x4x4, reshape 2x80, convolution 2x8x8x5, reduce_window 2x4x4x5, "
            "transpose 2x5x4x4, reshape 2x80");
}

TEST_F(ChannelsLast, SumsHaveTheirDimsAsBefore) {
  const ValueId y = pooled(convolved(x_, w_));
  output(b_.reduce(ReduceKind::add, y, std::array<std::int64_t, 2>{0, 2}));
  EXPECT_EQ(ops(), "convolution 2x8x8x5, reduce_window 2x4x4x5, reduce 4x5, transpose 5x4");
}

TEST_F(ChannelsLast, WindowsOverFeaturesStay) {
  const WindowDim two{.size = 2, .stride = 1};
  output(pooled(pooled(convolved(x_, w_), two)));
  EXPECT_EQ(ops(), "-");
}

TEST_F(ChannelsLast, ABranchHasItsResultAsBefore) {
  const ValueId on = program_.add_input({DType::pred, {}}, InputKind::data, "on", {});
  const ValueId cond = b_.cond(on);
  const ValueId y = pooled(pooled(convolved(x_, w_)));
  b_.border(OpKind::otherwise, {cond});
  const ValueId z = b_.constant(0, b_.type(y));
  output(b_.border(OpKind::merge, {cond, y, z}));
  EXPECT_EQ(ops(),
            "cond , convolution 2x8x8x5, reduce_window 2x4x4x5, reduce_window 2x2x2x5, "
            "transpose 2x5x2x2, otherwise , constant 2x5x2x2, merge 2x5x2x2");
}

}  // namespace
}  // namespace weft::channels_last_test
