#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include <weft/nn/attention.hpp>
#include <weft/nn/losses.hpp>
#include <weft/ops/along_dim.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::ops_test {
namespace {

using testing::expect_error;
using testing::expect_near;
using testing::expect_refusal;
using testing::f32;
using testing::i32;
using Floats = std::vector<float>;

class Ops : public testing::TensorTest {};

TEST_F(Ops, ComputeElementwise) {
  const Tensor a = f32({1, 4, -2}, {3});
  const Tensor b = f32({2, -3, -2}, {3});
  EXPECT_EQ((a + b).to_vector(), (Floats{3, 1, -4}));
  EXPECT_EQ((a - b).to_vector(), (Floats{-1, 7, 0}));
  EXPECT_EQ((a * b).to_vector(), (Floats{2, -12, 4}));
  EXPECT_EQ((a / b).to_vector(), (Floats{0.5F, static_cast<float>(-4.0 / 3), 1}));
  EXPECT_EQ((-a).to_vector(), (Floats{-1, -4, 2}));
  EXPECT_EQ(maximum(a, b).to_vector(), (Floats{2, 4, -2}));
  EXPECT_EQ(minimum(a, b).to_vector(), (Floats{1, -3, -2}));
  EXPECT_EQ(abs(a).to_vector(), (Floats{1, 4, 2}));
  EXPECT_EQ(relu(a).to_vector(), (Floats{1, 4, 0}));
  expect_near(exp(b), {std::exp(2), std::exp(-3), std::exp(-2)});
  expect_near(tanh(b), {std::tanh(2), std::tanh(-3), std::tanh(-2)});
  expect_near(sigmoid(b), {1 / (1 + std::exp(-2)), 1 / (1 + std::exp(3)), 1 / (1 + std::exp(2))});
  const Tensor positive = f32({1, 4, 0.25}, {3});
  expect_near(log(positive), {0, std::log(4), std::log(0.25)});
  expect_near(sqrt(positive), {1, 2, 0.5});
  expect_near(rsqrt(positive), {1, 0.5, 2});
  expect_near(pow(positive, 1.5), {1, 8, 0.125});
  expect_near(pow(2.0, positive), {2, 16, std::pow(2, 0.25)});
}

TEST_F(Ops, RefuseTheMeanOfAnEmptyBatch) {
  expect_refusal({"mean: f32[0] has no elements"}, [](int& line) {
    const Tensor x = f32({1, 2}, {2});
    line = __LINE__ + 1;
    mean(slice(x, 0, 0, 0));
  });
}

TEST_F(Ops, TakeNumbersOnEitherSideInTheTensorsDtype) {
  const Tensor x = f32({1, 2}, {2});
  EXPECT_EQ((10 - x).to_vector(), (Floats{9, 8}));
  EXPECT_EQ((x / 4).to_vector(), (Floats{0.25, 0.5}));
  const Tensor n = i32({3, 5}, {2});
  const Tensor sum = n + 1;
  EXPECT_EQ(sum.type(), (TensorType{DType::i32, {2}}));
  EXPECT_EQ(cast(sum, DType::f32).to_vector(), (Floats{4, 6}));
}

TEST_F(Ops, BroadcastAsNumpyDoes) {
  const Tensor column = f32({1, 2}, {2, 1});
  const Tensor row = f32({10, 20, 30}, {3});
  const Tensor sum = column + row;
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_EQ(sum.to_vector(), (Floats{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ((row * column).to_vector(), (Floats{10, 20, 30, 20, 40, 60}));
  EXPECT_EQ((row + scalar(1)).to_vector(), (Floats{11, 21, 31}));
  EXPECT_EQ(broadcast_to(column, {2, 2, 2}).to_vector(), (Floats{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ((full({2, 0}, 1) + full({1}, 1)).shape(), (Shape{2, 0}));
}

TEST_F(Ops, CompareAndSelect) {
  const Tensor a = f32({1, 5, 3}, {3});
  const Tensor b = f32({1, 2, 4}, {3});
  EXPECT_EQ(equal(a, b).type(), (TensorType{DType::pred, {3}}));
  EXPECT_EQ(cast(equal(a, b), DType::f32).to_vector(), (Floats{1, 0, 0}));
  EXPECT_EQ(where(greater(a, b), a, 0.0).to_vector(), (Floats{0, 5, 0}));
  EXPECT_EQ(where(greater(a, 2.0), 1.0, -1.0).to_vector(), (Floats{-1, 1, 1}));
  EXPECT_EQ(where(greater(a, b), f32({7}, {1}), b).to_vector(), (Floats{1, 7, 4}));
}

TEST_F(Ops, CompareInEveryDirection) {
  const Tensor a = f32({1, 2, 3, NAN}, {4});
  const auto numbers = [](const Tensor& x) { return cast(x, DType::f32).to_vector(); };
  EXPECT_EQ(numbers(not_equal(a, 2)), (Floats{1, 0, 1, 1}));
  EXPECT_EQ(numbers(less(a, 2)), (Floats{1, 0, 0, 0}));
  EXPECT_EQ(numbers(less_equal(a, 2)), (Floats{1, 1, 0, 0}));
  EXPECT_EQ(numbers(greater(a, 2)), (Floats{0, 0, 1, 0}));
  EXPECT_EQ(numbers(greater_equal(a, 2)), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(numbers(isfinite(f32({1, INFINITY, -INFINITY, NAN}, {4}))), (Floats{1, 0, 0, 0}));
}

TEST_F(Ops, OperatorsCompareElementByElement) {
  const Tensor a = f32({1, 2, 3, NAN}, {4});
  const Tensor b = f32({2, 2, 2, NAN}, {4});
  const auto of = [](const Tensor& x) { return cast(x, DType::f32).to_vector(); };
  EXPECT_EQ(of(a == b), (Floats{0, 1, 0, 0}));
  EXPECT_EQ(of(a != b), (Floats{1, 0, 1, 1}));
  EXPECT_EQ(of(a < b), (Floats{1, 0, 0, 0}));
  EXPECT_EQ(of(a <= 2), (Floats{1, 1, 0, 0}));
  EXPECT_EQ(of(2 < a), (Floats{0, 0, 1, 0}));
  EXPECT_EQ(of(a >= b), (Floats{0, 1, 1, 0}));
  EXPECT_EQ(of(2 == a), (Floats{0, 1, 0, 0}));
}

TEST_F(Ops, ACloneKeepsAParametersPresentValue) {
  struct Net : Module {
    Parameter weight = add_parameter("weight", Floats{1, 2}, {2});
  } net;
  const Tensor before = clone(net.weight);
  const Tensor same = net.weight;
  EXPECT_EQ(grad(sum(before * before), std::vector<Tensor>{net.weight})[0].to_vector(),
            (Floats{2, 4}));
  net.weight.assign(net.weight * 3);
  sync();
  EXPECT_EQ(before.to_vector(), (Floats{1, 2}));
  EXPECT_EQ(same.to_vector(), (Floats{3, 6}));
}

TEST_F(Ops, ANaNStaysInActivationsAndTheirGradients) {
  const Tensor x = f32({0, -1, 8}, {3});
  const Tensor y = sum(relu(sqrt(x)));
  EXPECT_TRUE(std::isnan(grad(y, std::vector{x})[0].to_vector()[1]));
  EXPECT_TRUE(std::isnan(y.item()));
  const Tensor nan = f32({NAN}, {1});
  using Function = Tensor (*)(Operand);
  for (const Function function : std::initializer_list<Function>{
           relu, silu, mish, hardsigmoid, hardswish, softplus, sigmoid, tanh, sign, abs}) {
    EXPECT_TRUE(std::isnan(function(nan).item()));
  }
  for (const Tensor& of : {gelu(nan), leaky_relu(nan), elu(nan), clamp(nan, -1, 1), maximum(nan, 0),
                           minimum(0, nan), amax(nan), normalize(nan, 2, 0)}) {
    EXPECT_TRUE(std::isnan(of.item()));
  }
}

TEST_F(Ops, ClampRefusesABoundThatIsNoNumber) {
  expect_refusal({"clamp: min = nan", "leave out"}, [](int& line) {
    const Tensor x = f32({1, 2}, {2});
    line = __LINE__ + 1;
    clamp(x, NAN);
  });
}

TEST_F(Ops, MakeConstants) {
  EXPECT_EQ(full({2, 2}, 0.5).to_vector(), (Floats{0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(cast(iota({2, 3}, -1), DType::f32).to_vector(), (Floats{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(iota({2, 3}, 0, DType::f32).to_vector(), (Floats{0, 0, 0, 1, 1, 1}));
}

TEST_F(Ops, Reduce) {
  const Tensor x = f32({1, 2, 3, 4, 5, 9}, {2, 3});
  EXPECT_EQ(sum(x).item(), 24);
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(sum(x, {0}).to_vector(), (Floats{5, 7, 12}));
  EXPECT_EQ(sum(x, {-1}).to_vector(), (Floats{6, 18}));
  EXPECT_EQ(sum(x, {1}, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(mean(x, {1}).to_vector(), (Floats{2, 6}));
  EXPECT_EQ(mean(x).item(), 4);
  EXPECT_EQ(mean(x, {0}, true).shape(), (Shape{1, 3}));
  EXPECT_EQ(amax(x, {1}).to_vector(), (Floats{3, 9}));
  EXPECT_EQ(amax(x, {1, 0}, true).shape(), (Shape{1, 1}));
}

TEST_F(Ops, ChangeShapes) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(reshape(x, {3, -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(reshape(x, Shape{6}).to_vector(), x.to_vector());
  EXPECT_EQ(transpose(x, 0, 1).to_vector(), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(permute(reshape(x, {1, 2, 3}), {2, 0, -2}).shape(), (Shape{3, 1, 2}));
  EXPECT_EQ(x.dim(-1), 3);
}

TEST_F(Ops, TakeAndJoinParts) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(slice(x, 1, 1, 3).to_vector(), (Floats{2, 3, 5, 6}));
  EXPECT_EQ(slice(x, -1, -2, 100).to_vector(), (Floats{2, 3, 5, 6}));
  EXPECT_EQ(slice(x, 1, 0, 3, 2).to_vector(), (Floats{1, 3, 4, 6}));
  EXPECT_EQ(slice(x, 0, 2, 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(cat({x, x}).shape(), (Shape{4, 3}));
  EXPECT_EQ(cat({x, slice(x, 1, 0, 1)}, -1).to_vector(), (Floats{1, 2, 3, 1, 4, 5, 6, 4}));
  EXPECT_EQ(pad(slice(x, 0, 0, 1), {{0, 1}, {1, 0}}, 9).to_vector(),
            (Floats{9, 1, 2, 3, 9, 9, 9, 9}));
}

TEST_F(Ops, FlipAndNarrow) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(flip(x, {-1}).to_vector(), (Floats{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(flip(x, {0, 1}).to_vector(), (Floats{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(flip(x, {}).to_vector(), x.to_vector());
  EXPECT_EQ(narrow(x, 1, i32({1}, {}), 2).to_vector(), (Floats{2, 3, 5, 6}));
  EXPECT_EQ(narrow(x, -1, i32({9}, {}), 1).to_vector(), (Floats{3, 6}));
  const Tensor g = grad(sum(narrow(x, 0, i32({1}, {}), 1)), std::vector{x})[0];
  EXPECT_EQ(g.to_vector(), (Floats{0, 0, 0, 1, 1, 1}));
}

TEST_F(Ops, EmbeddingTakesRows) {
  const Tensor weight = f32({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor y = embedding(weight, i32({2, 0, 2, 1}, {2, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  const Tensor g = grad(sum(y), std::vector{weight})[0];
  EXPECT_EQ(y.to_vector(), (Floats{5, 6, 1, 2, 5, 6, 3, 4}));
  EXPECT_EQ(g.to_vector(), (Floats{1, 1, 1, 1, 2, 2}));
}

TEST_F(Ops, TheRowOfPaddingHasNoGradient) {
  const Tensor weight = f32({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor index = i32({2, 0, 2, 1}, {2, 2});
  for (const std::int64_t padding : {2, -1}) {
    const Tensor y = embedding(weight, index, padding);
    const Tensor g = grad(sum(y), std::vector{weight})[0];
    EXPECT_EQ(y.to_vector(), (Floats{5, 6, 1, 2, 5, 6, 3, 4}));
    EXPECT_EQ(g.to_vector(), (Floats{1, 1, 1, 1, 0, 0}));
  }
  expect_refusal({"embedding: padding_idx = 3", "from -3 to 2"}, [&](int& line) {
    line = __LINE__ + 1;
    embedding(weight, index, 3);
  });
}

TEST_F(Ops, IndexAddAddsToRows) {
  const Tensor x = f32({1, 1, 1, 1, 1, 1}, {3, 2});
  const Tensor source = f32({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const Tensor y = index_add(x, i32({2, 0, 2, -1}, {4}), source);
  const auto g = grad(sum(y * f32({1, 2, 3}, {3, 1})), std::vector{x, source});
  EXPECT_EQ(y.to_vector(), (Floats{4, 5, 1, 1, 7, 9}));
  EXPECT_EQ(g[0].to_vector(), (Floats{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(g[1].to_vector(), (Floats{3, 3, 1, 1, 3, 3, 0, 0}));
}

TEST_F(Ops, RefuseAnIndexThatDoesNotFit) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor index = i32({0, 1}, {2});
  expect_refusal({"embedding: the index f32[3,2] isn't i32 or i64"},
                 [&](int& line) { line = __LINE__, embedding(x, x); });
  expect_refusal({"index_add: f32[3,2], index i32[2] and source f32[3,2]"},
                 [&](int& line) { line = __LINE__, index_add(x, index, x); });
  expect_refusal({"narrow: length = 4: expected 0 to 3"},
                 [&](int& line) { line = __LINE__, narrow(x, 0, index, 4); });
  expect_refusal({"narrow: start is i32[2]: expected i32[]"},
                 [&](int& line) { line = __LINE__, narrow(x, 0, index, 1); });
  expect_refusal({"flip: dim 2 is outside"}, [&](int& line) { line = __LINE__, flip(x, {2}); });
}

TEST_F(Ops, MultiplyMatrices) {
  const Tensor a = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = f32({1, 0, 0, 1, 1, 1}, {3, 2});
  EXPECT_EQ(matmul(a, b).to_vector(), (Floats{4, 5, 10, 11}));
  const Tensor batched = matmul(reshape(a, {2, 1, 3}), reshape(b, {2, 3, 1}));
  EXPECT_EQ(batched.shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(batched.to_vector(), (Floats{1, 4 + 5 + 6}));
}

TEST_F(Ops, ApplyALinearLayerToTheLastDim) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const Tensor weight = f32({1, 1, 1, -1, 0, 2}, {3, 2});
  const Tensor y = linear(x, weight, f32({0, 0, 100}, {3}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(y.to_vector(), (Floats{3, -1, 104, 7, -1, 108, 11, -1, 112, 15, -1, 116}));
  EXPECT_EQ(linear(x, weight, Tensor()).to_vector()[2], 4);
}

TEST_F(Ops, SoftmaxStaysFiniteForLargeLogits) {
  const Tensor x = f32({1000, 1001, 1000, -1000}, {2, 2});
  const double p = 1 / (1 + std::exp(1));
  expect_near(softmax(x), {p, 1 - p, 1, 0});
  expect_near(log_softmax(x), {std::log(p), std::log(1 - p), 0, -2000});
  expect_near(softmax(x, 0), {0.5, 1, 0.5, 0});
}

TEST_F(Ops, NormsGoOverTheDimsOfTheirWeight) {
  const Tensor x = f32({1, 1, 3, 3, 0, 4, 8, 4}, {2, 2, 2});
  const Tensor weight = f32({1, 2, 3, 4}, {2, 2});
  const double r = 1 / std::sqrt(8.0);
  expect_near(layer_norm(x, weight, f32({0, 0, 0, 10}, {2, 2}), 0),
              {-1, -2, 3, 14, -4 * r, 0, 12 * r, 10});
  expect_near(layer_norm(x, f32({1, 1}, {2}), Tensor(), 1e-9), {0, 0, 0, 0, -1, 1, 1, -1});
  const double s = 1 / std::sqrt(5.0);
  const double t = 1 / std::sqrt(24.0);
  expect_near(rms_norm(x, weight, 0), {s, 2 * s, 9 * s, 12 * s, 0, 8 * t, 24 * t, 16 * t});
}

TEST_F(Ops, AttentionIsScaledByTheSizeOfAKey) {
  const float ln3 = std::log(3.0F);
  const Tensor q = f32({ln3, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 2, 4});
  const Tensor k = f32({0, 0, 0, 0, 2, 0, 0, 0}, {1, 1, 2, 4});
  const Tensor v = f32({4, 8}, {1, 1, 2, 1});
  expect_near(attention(q, k, v), {7, 6});
  expect_near(attention(q, k, v, {.causal = true}), {4, 6});
  expect_near(attention(q, k, v, {.scale = 0.0}), {6, 6});
}

TEST_F(Ops, CrossEntropyIsTheMeanOverTheBatch) {
  const Tensor logits = f32({0, 0, 0, 2, 1, 0}, {2, 3});
  const double row1 = std::log(std::exp(2) + std::exp(1) + 1) - 1;
  EXPECT_NEAR(cross_entropy(logits, i32({2, 1}, {2})).item(), (std::log(3) + row1) / 2, 1e-6);
}

TEST_F(Ops, CrossEntropyRefusesALabelThatIsNoClass) {
  for (const std::int32_t label : {3, -1, 1000}) {
    testing::InterpretRuntime runtime(Mesh({1}, {"data"}));
    const RuntimeScope scope(runtime);
    const Tensor logits = f32({0, 0, 0, 2, 1, 0}, {2, 3});
    expect_refusal({"a label or index is ", fmt::format("{}: expected 0 to 2", label)},
                   [&](int& line) {
                     line = __LINE__ + 1;
                     const Tensor loss = cross_entropy(logits, i32({1, label}, {2}));
                     sync();
                   });
  }
}

TEST_F(Ops, CrossEntropyLeavesIgnoredLabelsOutOfTheMean) {
  const Tensor logits = f32({0, 0, 0, 2, 1, 0, 5, 1, 1}, {3, 3});
  const double row1 = std::log(std::exp(2) + std::exp(1) + 1) - 1;
  const double row0 = std::log(3);
  EXPECT_NEAR(cross_entropy(logits, i32({2, 1, -100}, {3})).item(), (row0 + row1) / 2, 1e-6);
  const std::vector<std::int64_t> wide{2, 1, -100};
  EXPECT_NEAR(cross_entropy(logits, to_device(wide, {3})).item(), (row0 + row1) / 2, 1e-6);
  // Labels that are computed from data with ignored labels give the same loss.
  const Tensor longer = i32({7, 2, -100, -100}, {4});
  EXPECT_NEAR(cross_entropy(logits, slice(longer, 0, 1, 4)).item(), row0, 1e-6);
  const Tensor labels = i32({2, 1, 0}, {3});
  EXPECT_NEAR(cross_entropy(logits, labels, {.ignore_index = 0}).item(), (row0 + row1) / 2, 1e-6);
  const Tensor loss = cross_entropy(logits, i32({-100, 1, -100}, {3}));
  const Floats g = grad(loss, std::vector{logits})[0].to_vector();
  EXPECT_EQ(Floats(g.begin(), g.begin() + 3), (Floats{0, 0, 0}));
  EXPECT_NEAR(g[4], std::exp(-row1) - 1, 1e-6);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, i32({-100, -100, -100}, {3})).item())) << "as torch";
}

TEST_F(Ops, CrossEntropySaysHowToIgnoreLabelsThatAreComputed) {
  const Tensor logits = f32({0, 0, 0, 2, 1, 0}, {2, 3});
  const Tensor shift = f32({-101, 0}, {2});
  const Tensor labels = i32({1, 1}, {2}) + cast(shift, DType::i32);
  expect_refusal({"-100: expected 0 to 2; ", "{.ignore_index = -100}"}, [&](int& line) {
    line = __LINE__ + 1;
    const Tensor loss = cross_entropy(logits, labels);
    sync();
  });
}

TEST_F(Ops, EmbeddingRefusesAnIndexOutsideTheTable) {
  const Tensor table = f32({0, 1, 2, 3, 4, 5}, {3, 2});
  expect_refusal({"a label or index is 3: expected 0 to 2"}, [&](int& line) {
    line = __LINE__ + 1;
    const Tensor rows = embedding(table, i32({0, 3}, {2}));
    sync();
  });
}

TEST_F(Ops, CrossEntropyHasTheGradientOfSoftmax) {
  const Tensor logits = f32({0.5, -1, 2, 2, 2, 2}, {2, 3});
  const Tensor loss = cross_entropy(logits, i32({0, 2}, {2}));
  const Tensor g = grad(loss, std::vector{logits})[0];
  const Tensor expected = (softmax(logits) - f32({1, 0, 0, 0, 0, 1}, {2, 3})) / 2;
  const Floats values = expected.to_vector();
  expect_near(g, {values.begin(), values.end()});
}

TEST_F(Ops, ReluHasNoGradientAtZero) {
  const Tensor x = f32({-1, 0, 2}, {3});
  EXPECT_EQ(grad(sum(relu(x)), std::vector{x})[0].to_vector(), (Floats{0, 0, 1}));
}

TEST_F(Ops, RefuseShapesThatDoNotBroadcastNamingBothAndTheLine) {
  const Tensor a = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = f32({1, 2}, {2});
  expect_refusal({"add: shapes [2,3] and [2] don't broadcast", "3 and 2 in dim 1"},
                 [&](int& line) { line = __LINE__, a + b; });
}

TEST_F(Ops, RefuseDtypesThatDiffer) {
  const Tensor a = f32({1}, {1});
  const Tensor b = i32({1}, {1});
  expect_refusal({"multiply: f32[1] and i32[1] differ in dtype"},
                 [&](int& line) { line = __LINE__, a * b; });
  expect_refusal({"the number 0.5 can't be i32"}, [&](int& line) { line = __LINE__, b * 0.5; });
  expect_refusal({"the number inf can't be i32"}, [&](int& line) {
    line = __LINE__, masked_fill(b, equal(b, 1), std::numeric_limits<double>::infinity());
  });
}

TEST_F(Ops, RefuseNumbersWhereATensorIsNeeded) {
  expect_refusal({"maximum", "needs a tensor"},
                 [&](int& line) { line = __LINE__, maximum(1.0, 2.0); });
  expect_refusal({"sum: needs a tensor, not the number 1"},
                 [&](int& line) { line = __LINE__, sum(1.0); });
}

TEST_F(Ops, RefuseATensorWithoutAValue) {
  const Tensor none;
  const Tensor x = f32({1}, {1});
  expect_refusal({"without a value"}, [&](int& line) { line = __LINE__, x + none; });
  expect_error(Errc::invalid_argument, {"without a value"}, [&] { none.shape(); });
}

TEST_F(Ops, BatchNormTakesTheStatisticsThatItIsGiven) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  const BatchStatistics batch = batch_statistics(x);
  expect_near(batch.mean, {3.5, 5.5});
  expect_near(batch.variance, {4.25, 4.25});
  const Tensor y = batch_norm(x, {f32({1, 2}, {2}), f32({4, 0}, {2})}, f32({2, 3}, {2}), {}, 0.25);
  const double r = 2 / std::sqrt(4.25);
  expect_near(y, {0, r, 6, 12, 4 * r, 5 * r, 30, 36});
}

TEST_F(Ops, BatchNormAndRopeSayWhatTheyTake) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor three = f32({1, 1, 1}, {3});
  expect_refusal({"batch_statistics: ", "[N,C,...]"},
                 [&](int& line) { line = __LINE__, batch_statistics(three); });
  expect_refusal(
      {"batch_norm: the weight ", "doesn't fit: expected f32[3], one element for each channel of "},
      [&](int& line) {
        line = __LINE__, batch_norm(x, {three, three}, f32({1, 1}, {2}), {});
      });
  expect_refusal({"rope: ", "even K"}, [&](int& line) { line = __LINE__, rope(x); });
  expect_refusal({"rope: ", "base 0"}, [&](int& line) {
    line = __LINE__, rope(f32({1, 2}, {1, 2}), 0);
  });
}

TEST_F(Ops, RefuseDimsThatDoNotExist) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_refusal({"sum: dim 2 is outside of a tensor of 2 dims"},
                 [&](int& line) { line = __LINE__, sum(x, {2}); });
  expect_refusal({"amax: dims {0,-2} contain one dim twice"}, [&](int& line) {
    line = __LINE__, amax(x, {0, -2});
  });
  expect_refusal({"layer_norm: the weight", "last dims"}, [&](int& line) {
    line = __LINE__, layer_norm(x, f32({1, 1}, {1, 2}), Tensor());
  });
  expect_refusal({"log_softmax: dim -3"}, [&](int& line) { line = __LINE__, log_softmax(x, -3); });
  expect_refusal({"transpose: dim 5"}, [&](int& line) { line = __LINE__, transpose(x, 0, 5); });
  expect_refusal({"reshape", "6 elements", "{4,-1}"}, [&](int& line) {
    line = __LINE__, reshape(x, {4, -1});
  });
  expect_refusal({"slice: dim 2 is outside"},
                 [&](int& line) { line = __LINE__, slice(x, 2, 0, 1); });
  expect_refusal({"slice: step = 0"}, [&](int& line) { line = __LINE__, slice(x, 0, 0, 1, 0); });
  expect_refusal({"cat: needs at least one tensor"}, [&](int& line) { line = __LINE__, cat({}); });
  expect_refusal({"cat(", "f32[2,3] and f32[3,2]"}, [&](int& line) {
    line = __LINE__, cat({x, transpose(x, 0, 1)});
  });
  expect_refusal({"pad: 1 widths are given for the 2 dims"}, [&](int& line) {
    line = __LINE__, pad(x, {{0, 1}});
  });
  expect_error(Errc::invalid_argument, {"dim(2) of f32[2,3]"}, [&] { x.dim(2); });
}

TEST_F(Ops, RefuseMatricesThatDoNotFit) {
  const Tensor a = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_refusal({"matmul: f32[2,3] and f32[2,3] don't fit"},
                 [&](int& line) { line = __LINE__, matmul(a, a); });
  const Tensor w = f32({1, 2}, {1, 2});
  expect_refusal({"linear: f32[2,3] and the weight f32[1,2]"},
                 [&](int& line) { line = __LINE__, linear(a, w, {}); });
  expect_refusal({"cross_entropy: logits f32[2,3] and probabilities f32[1,2]"},
                 [&](int& line) { line = __LINE__, cross_entropy(a, w); });
}

TEST_F(Ops, RefuseAWrongNumberOfElements) {
  const Floats three{1, 2, 3};
  expect_refusal({"to_device: 3 elements are given for f32[2,2], which has 4"}, [&](int& line) {
    line = __LINE__, to_device(three, {2, 2});
  });
}

TEST_F(Ops, ReadOnlyWhatHasTheRightForm) {
  const Tensor x = f32({1, 2}, {2});
  expect_refusal({"item: f32[2] has 2 elements"}, [&](int& line) { line = __LINE__, x.item(); });
  const Tensor n = i32({7}, {1});
  expect_refusal({"i32[1] is read as f32"}, [&](int& line) { line = __LINE__, n.to_vector(); });
  EXPECT_EQ(n.item(), 7);
  EXPECT_EQ(n.to_bytes(), (std::vector{std::byte{7}, std::byte{0}, std::byte{0}, std::byte{0}}));
}

TEST_F(Ops, WhatDoesNotFitIsRefusedWithTheValueAndTheLine) {
  const Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto refuses = [](std::initializer_list<std::string_view> words,
                          const std::function<void()>& call) {
    const std::string message = expect_error(Errc::invalid_argument, words, call);
    EXPECT_NE(message.find("(at ops_test.cpp:"), std::string::npos) << message;
  };
  const Tensor empty = full({0, 3}, 0);
  refuses({"mse_loss", "no elements"},
          [&] { mse_loss(empty, empty, {.sample_weight = full({0}, 1)}); });
  refuses({"clamp", "min, max or both"}, [&] { clamp(x, std::nullopt); });
  refuses({"split", "size = 0"}, [&] { split(x, 0); });
  refuses({"split", "sizes {1,3}", "2, the size of dim 0"}, [&] { split(x, {1, 3}); });
  refuses({"chunk", "count = -1"}, [&] { chunk(x, -1); });
  refuses({"repeat", "counts {2}"}, [&] { repeat(x, {2}); });
  refuses({"flatten", "dim 1 comes after dim 0"}, [&] { flatten(x, 1, 0); });
  refuses({"stack", "one tensor"}, [&] { stack(std::vector<Tensor>{}); });
  refuses({"tril", "rows and columns"}, [&] { tril(f32({1}, {1})); });
  refuses({"argmax", "has no elements"}, [&] { argmax(slice(x, 0, 0, 0), 0); });
  refuses({"one_hot", "num_classes = 0"}, [&] { one_hot(i32({1}, {1}), 0); });
  refuses({"index_select", "i32[n]"}, [&] { index_select(x, 0, x); });
  refuses({"topk", "k = 4", "0 to 3"}, [&] { topk(x, 4); });
  refuses({"gather", "i32[3,3]"}, [&] { gather(x, 1, iota({3, 3}, 0)); });
  refuses({"scatter_add", "equal"}, [&] { scatter_add(x, 1, iota({2, 2}, 0), x); });
  refuses({"cumsum", "no dims"}, [&] { cumsum(sum(x), 1); });
  refuses({"unsqueeze", "7 dims; at most 6"}, [&] { unsqueeze(full({1, 1, 1, 1, 1, 1}, 1), 0); });
}

TEST_F(Ops, OfIntegersAreRealWhereTorchHasThemSo) {
  const Tensor a = i32({7, -7, 8}, {3});
  expect_near(a / 2, {3.5, -3.5, 4});
  expect_near(exp(a - a), {1, 1, 1});
  expect_near(1 / a, {1.0 / 7, -1.0 / 7, 0.125});
  EXPECT_EQ(floor_divide(a, 2).to_vector<std::int32_t>(), (std::vector{3, -4, 4}));
  expect_near(floor_divide(f32({7.5, -7.5, 8}, {3}), 2), {3, -4, 4});
  EXPECT_EQ(split(a, {1, 2})[1].to_vector<std::int32_t>(), (std::vector{-7, 8}));
  EXPECT_EQ(split(i32({1, 2}, {2}), {2}).size(), 1U);
  EXPECT_NEAR(logsumexp(i32({0, 0}, {2})).item(), std::log(2), 1e-6);
}

TEST_F(Ops, EmptyTensorsComeFromTheHost) {
  const Tensor none = to_device(Floats{}, {0, 3});
  const Tensor some = f32({1, 2, 3}, {1, 3});
  EXPECT_EQ(cat({none, some}, 0).to_vector(), (Floats{1, 2, 3}));
  EXPECT_EQ(sum(none).item(), 0);
  EXPECT_EQ(matmul(transpose(none, 0, 1), none).to_vector(), Floats(9, 0));
  EXPECT_TRUE((none * 2).to_vector().empty());
  EXPECT_EQ(grad(sum(none), std::vector{none})[0].shape(), (Shape{0, 3}));
}

TEST_F(Ops, EmptyTensorsHaveTheirResults) {
  const Tensor none = slice(f32({1, 2, 3}, {1, 3}), 0, 0, 0);
  EXPECT_EQ(cast(any(none), DType::f32).item(), 0);
  EXPECT_EQ(cast(all(none), DType::f32).item(), 1);
  EXPECT_EQ(split(none, 2).size(), 1U);
  EXPECT_EQ(repeat(none, {2, 2}).shape(), Shape({0, 6}));
  EXPECT_EQ(roll(none, 1, 0).shape(), Shape({0, 3}));
  EXPECT_EQ(argmax(none, 1).shape(), Shape({0}));
  EXPECT_EQ(norm(none).item(), 0);
}

}  // namespace
}  // namespace weft::ops_test
