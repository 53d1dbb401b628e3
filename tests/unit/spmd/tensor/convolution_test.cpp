#include <numeric>

#include <gtest/gtest.h>

#include <weft/tests/unit/spmd/tensor/tensor_fixture.hpp>

namespace weft {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::f32;
using testing::i32;
using Floats = std::vector<float>;

class ConvolutionOps : public testing::TensorTest {
 protected:
  /// 1, 2, 3, ...
  static Tensor counting(const Shape& shape) {
    Floats elements(static_cast<std::size_t>(shape.num_elements()));
    std::iota(elements.begin(), elements.end(), 1.0F);
    return f32(elements, shape);
  }
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

TEST_F(ConvolutionOps, RefuseShapesThatDoNotFit) {
  const Tensor x = counting({1, 4, 3, 3});
  const Tensor w = counting({6, 4, 2, 2});
  const Tensor flat = counting({4, 9});
  expect_refusal({"conv2d: f32[4,9]", "2 dims", "[N,C,H,W]"},
                 [&](int& line) { line = __LINE__, conv2d(flat, w, {}); });
  expect_refusal({"conv2d: f32[1,4,3,3]", "weight f32[6,4,2,2]", "groups = 2", "[O,C/2,kh,kw]"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, {}, {.groups = 2}); });
  expect_refusal({"conv2d: groups = 0"},
                 [&](int& line) { line = __LINE__, conv2d(x, w, {}, {.groups = 0}); });
  const Tensor bias = counting({4});
  expect_refusal({"conv2d: the bias f32[4]", "f32[6,4,2,2]"},
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
}  // namespace weft
