#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::convolution_test {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::f32;
using testing::i32;
using Floats = std::vector<float>;

class ConvolutionOps : public testing::TensorTest {
 protected:
  /// Returns a tensor of first, first + 1, and so on.
  static Tensor counting(const Shape& shape, float first = 1) {
    Floats elements(static_cast<std::size_t>(shape.num_elements()));
    std::iota(elements.begin(), elements.end(), first);
    return f32(elements, shape);
  }
  static Tensor counting_from_0(const Shape& shape) { return counting(shape, 0); }
};

TEST_F(ConvolutionOps, Conv2dSlidesTheWeightsAsTheyAre) {
  const Tensor x = counting({1, 1, 3, 3});
  const Tensor w = f32({1, 10, 100, 1000}, {1, 1, 2, 2});
  EXPECT_EQ(conv2d(x, w, {}).to_vector(), (Floats{5421, 6532, 8754, 9865}));
  EXPECT_EQ(conv2d(x, w, f32({1}, {1})).to_vector(), (Floats{5422, 6533, 8755, 9866}));
  EXPECT_EQ(conv2d(x, w, {}, {.stride = 2, .padding = 1}).to_vector(),
            (Floats{1000, 3200, 7040, 9865}));
  EXPECT_EQ(conv2d(x, w, {}, {.dilation = 2}).to_vector(), (Floats{9731}));
  EXPECT_EQ(conv2d(x, w, {}, {.stride = {2, 1}, .padding = {1, 0}}).to_vector(),
            (Floats{2100, 3200, 8754, 9865}));
}

/// The expected values are those of torch with padding="same".
TEST_F(ConvolutionOps, Conv2dKeepsHeightAndWidth) {
  const Conv2dOptions same{.same_padding = true};
  const Tensor w = f32({1, 2, 3, 4}, {1, 1, 2, 2});
  EXPECT_EQ(conv2d(counting_from_0({1, 1, 4, 4}), w, {}, same).to_vector(),
            (Floats{34, 44, 54, 24, 74, 84, 94, 40, 114, 124, 134, 56, 38, 41, 44, 15}));
  const Tensor wide = f32({0, 1, 2, 3, 4, 5}, {1, 1, 2, 3});
  const Tensor y =
      conv2d(counting_from_0({1, 1, 5, 6}), wide, {}, {.dilation = 2, .same_padding = true});
  EXPECT_EQ(y.to_vector(),
            (Floats{64,  73,  100, 112, 64,  71,  122, 134, 182, 197, 110, 118, 194, 206, 272,
                    287, 158, 166, 266, 278, 362, 377, 206, 214, 58,  61,  64,  67,  22,  23}));
  expect_refusal({"conv2d: same_padding with stride = {2, 2}", "expected stride 1"},
                 [&](int& line) {
                   const Conv2dOptions strided{.stride = 2, .same_padding = true};
                   line = __LINE__, conv2d(counting_from_0({1, 1, 4, 4}), w, {}, strided);
                 });
}

TEST_F(ConvolutionOps, Conv2dSumsTheChannelsOfAGroup) {
  const Tensor x = counting({1, 4, 1, 2});
  const Tensor w = f32({1, 10, 100, 1000}, {2, 2, 1, 1});
  const Tensor y = conv2d(x, w, f32({0.5, 0.25}, {2}), {.groups = 2});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(y.to_vector(), (Floats{31.5, 42.5, 7500.25, 8600.25}));
  const Tensor depthwise = conv2d(x, f32({1, 2, 3, 4}, {4, 1, 1, 1}), {}, {.groups = 4});
  EXPECT_EQ(depthwise.to_vector(), (Floats{1, 2, 6, 8, 15, 18, 28, 32}));
}

TEST_F(ConvolutionOps, Conv2dHasGradients) {
  const Tensor x = counting({1, 1, 2, 3});
  const Tensor w = f32({1, 2, 3, 4}, {1, 1, 2, 2});
  const Tensor b = f32({0}, {1});
  const Tensor loss = sum(conv2d(x, w, b));
  const auto g = grad(loss, std::vector{x, w, b});
  EXPECT_EQ(g[0].to_vector(), (Floats{1, 3, 2, 3, 7, 4}));
  EXPECT_EQ(g[1].to_vector(), (Floats{3, 5, 9, 11}));
  EXPECT_EQ(g[2].to_vector(), (Floats{2}));
}

TEST_F(ConvolutionOps, MaxPool2dTakesTheLargestAndGivesItTheGradient) {
  const Tensor x = f32({1, 5, 5, 2, 3, 4, 0, 7, 6, 8, 8, 8}, {1, 1, 3, 4});
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 2}).to_vector(), (Floats{5, 7}));
  EXPECT_EQ(max_pool2d(x, {.kernel_size = {1, 2}, .stride = 1}).shape(), (Shape{1, 1, 3, 3}));
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 3, .stride = 2, .padding = 1}).to_vector(),
            (Floats{5, 7, 8, 8}));
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 2, .stride = 1, .dilation = 2}).to_vector(),
            (Floats{8, 8}));
  const MaxPool2dOptions wide{.kernel_size = 3, .stride = 1};
  EXPECT_EQ(max_pool2d(x, wide).to_vector(), (Floats{8, 8}));
  const Tensor loss = sum(max_pool2d(x, wide) * f32({10, 1}, {1, 1, 1, 2}));
  EXPECT_EQ(grad(loss, std::vector{x})[0].to_vector(),
            (Floats{0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0}));
}

TEST_F(ConvolutionOps, MaxPool2dPadsWithNothing) {
  const Tensor x = f32({-1, -2, -3, -4}, {1, 1, 2, 2});
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 2, .padding = 1}).to_vector(), (Floats{-1, -2, -3, -4}));
}

TEST_F(ConvolutionOps, AvgPool2dCountsThePaddingUnlessToldNotTo) {
  const Tensor x = counting({1, 1, 2, 4});
  EXPECT_EQ(avg_pool2d(x, {.kernel_size = 2}).to_vector(), (Floats{3.5, 5.5}));
  const AvgPool2dOptions padded{.kernel_size = 2, .padding = 1};
  EXPECT_EQ(avg_pool2d(x, padded).to_vector(), (Floats{0.25, 1.25, 1, 1.25, 3.25, 2}));
  EXPECT_EQ(avg_pool2d(x, {.kernel_size = 2, .padding = 1, .count_include_pad = false}).to_vector(),
            (Floats{1, 2.5, 4, 5, 6.5, 8}));
  EXPECT_EQ(
      grad(sum(avg_pool2d(x, {.kernel_size = 2, .stride = 1})), std::vector{x})[0].to_vector(),
      (Floats{0.25, 0.5, 0.5, 0.25, 0.25, 0.5, 0.5, 0.25}));
}

/// The expected values are torch's.
TEST_F(ConvolutionOps, PoolsCountWindowsThatEndBeyondTheImage) {
  const Tensor x = counting_from_0({1, 1, 5, 5});
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 2, .ceil_mode = true}).to_vector(),
            (Floats{6, 8, 9, 16, 18, 19, 21, 23, 24}));
  EXPECT_EQ(max_pool2d(x, {.kernel_size = 3, .padding = 1, .ceil_mode = true}).to_vector(),
            (Floats{6, 9, 21, 24}));
  EXPECT_EQ(
      max_pool2d(counting_from_0({1, 1, 4, 4}), {.kernel_size = 2, .stride = 3, .ceil_mode = true})
          .to_vector(),
      (Floats{5, 7, 13, 15}));
  EXPECT_EQ(
      max_pool2d(counting_from_0({1, 1, 3, 3}), {.kernel_size = 1, .stride = 3, .ceil_mode = true})
          .to_vector(),
      (Floats{0}))
      << "no window begins beyond the image";
  const MaxPool2dOptions larger{.kernel_size = 3, .stride = HeightWidth{3, 1}, .ceil_mode = true};
  EXPECT_EQ(max_pool2d(counting_from_0({1, 1, 2, 5}), larger).to_vector(), (Floats{7, 8, 9}));
  for (const bool include : {true, false}) {
    EXPECT_EQ(avg_pool2d(x, {.kernel_size = 2, .count_include_pad = include, .ceil_mode = true})
                  .to_vector(),
              (Floats{3, 5, 6.5, 13, 15, 16.5, 20.5, 22.5, 24}));
  }
  AvgPool2dOptions padded{.kernel_size = 3, .stride = 2, .padding = 1, .ceil_mode = true};
  const Tensor even = counting_from_0({1, 1, 6, 6});
  const Floats sums{14, 30, 42, 16, 75, 126, 144, 51, 147, 234, 252, 87, 61, 96, 102, 35};
  const Floats counts{9, 9, 9, 6, 9, 9, 9, 6, 9, 9, 9, 6, 6, 6, 6, 4};
  const Floats with_pad = avg_pool2d(even, padded).to_vector();
  ASSERT_EQ(with_pad.size(), sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_FLOAT_EQ(with_pad[i], sums[i] / counts[i]);
  padded.count_include_pad = false;
  EXPECT_EQ(avg_pool2d(even, padded).to_vector(),
            (Floats{3.5, 5, 7, 8, 12.5, 14, 16, 17, 24.5, 26, 28, 29, 30.5, 32, 34, 35}));
}

TEST_F(ConvolutionOps, RefuseShapesThatDoNotFit) {
  const Tensor x = counting({1, 4, 3, 3});
  const Tensor w = counting({6, 4, 2, 2});
  const Tensor flat = counting({4, 9});
  expect_refusal({"conv2d: f32[4,9]", "2 dims", "[N,C,H,W]"},
                 [&](int& line) { line = __LINE__, conv2d(flat, w, {}); });
  expect_refusal({"conv2d: f32[1,4,3,3]", "weight f32[6,4,2,2]", "groups = 2", "[O,C/2,kernel..]"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, {}, {.groups = 2}); });
  expect_refusal({"conv2d: groups = 0"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, {}, {.groups = 0}); });
  const Tensor bias = counting({4});
  expect_refusal({"conv2d: the bias f32[4]", "expected f32[6]"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, bias); });
  expect_refusal({"conv2d: stride = {0, 1}", "1 to 2^20"}, [&](int& line) {
    line = __LINE__, conv2d(x, w, {}, {.stride = {0, 1}});
  });
  expect_refusal({"conv2d: padding = {0, -1}"}, [&](int& line) {
    line = __LINE__, conv2d(x, w, {}, {.padding = {0, -1}});
  });
  expect_refusal({"conv2d: f32[1,4,3,3]", "padding {0, 0}", "smaller than a window of 5x5"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, {}, {.dilation = 4}); });
}

TEST_F(ConvolutionOps, RefusePoolsThatDoNotFit) {
  const Tensor x = counting({1, 4, 3, 3});
  expect_refusal({"max_pool2d: padding = {2, 2}", "half of kernel_size {3, 3}"}, [&](int& line) {
    line = __LINE__, max_pool2d(x, {.kernel_size = 3, .padding = 2});
  });
  expect_refusal({"max_pool2d: kernel_size = {0, 0}"},
                 [&](int& line) { line = __LINE__, max_pool2d(x, {.kernel_size = 0}); });
  expect_refusal({"avg_pool2d: f32[1,4,3,3]", "window of 4x4"},
                 [&](int& line) { line = __LINE__, avg_pool2d(x, {.kernel_size = 4}); });
  const Tensor integers = i32({1, 2, 3, 4}, {1, 1, 2, 2});
  expect_refusal({"avg_pool2d: i32[1,1,2,2]", "floating"},
                 [&](int& line) { line = __LINE__, avg_pool2d(integers, {.kernel_size = 2}); });
}

}  // namespace
}  // namespace weft::convolution_test
