#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <weft/nn/attention.hpp>
#include <weft/nn/losses.hpp>

#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::attention_test {
namespace {

using testing::f32;
using testing::i32;
using Floats = std::vector<float>;

class MaskedAttention : public testing::TensorTest {
 protected:
  /// Returns a tensor of sin(shift), sin(shift + 1), and so on.
  static Floats wave(const Shape& shape, float shift) {
    Floats elements(static_cast<std::size_t>(shape.num_elements()));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i] = std::sin(static_cast<float>(i) + shift);
    }
    return elements;
  }
  static Tensor waves(const Shape& shape, float shift) { return f32(wave(shape, shift), shape); }

  static Tensor by_softmax(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
    return matmul(softmax(matmul(q, transpose(k, -2, -1)) * 0.5 + bias), v);
  }
  static void expect_equal(const Tensor& actual, const Tensor& expected) {
    const Floats a = actual.to_vector();
    const Floats e = expected.to_vector();
    ASSERT_EQ(a.size(), e.size());
    for (std::size_t i = 0; i < e.size(); ++i) EXPECT_NEAR(a[i], e[i], 1e-6) << "element " << i;
  }
  std::size_t count(OpKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(runtime_.programs.back().op_kinds, kind));
  }

  const Tensor q_ = waves({2, 2, 5, 4}, 0);
  const Tensor k_ = waves({2, 2, 7, 4}, 0.3F);
  const Tensor v_ = waves({2, 2, 7, 4}, 0.6F);
};

TEST_F(MaskedAttention, IsTheSoftmaxOfTheScoresAndWhatIsAdded) {
  for (const Shape& shape : {Shape{7}, Shape{5, 7}, Shape{5, 1}, Shape{2, 1, 7}, Shape{2, 1, 1, 7},
                             Shape{2, 2, 5, 7}, Shape{}}) {
    SCOPED_TRACE(shape.to_string());
    const Tensor bias = waves(shape, 1);
    expect_equal(attention(q_, k_, v_, {.bias = bias}), by_softmax(q_, k_, v_, bias));
    // A mask of this shape would hide all keys of a query or none.
    if (shape.size() == 0 || shape[shape.size() - 1] == 1) continue;
    const Tensor mask = greater(bias, -0.5);
    expect_equal(attention(q_, k_, v_, {.mask = mask}),
                 by_softmax(q_, k_, v_, where(mask, bias * 0.0, -1e30)));
  }
}

TEST_F(MaskedAttention, TakesAMaskAndABias) {
  const Tensor bias = waves({5, 7}, 1);
  const Tensor mask = not_equal(i32({1, 0, 1, 1, 0, 1, 1}, {7}), 0);
  expect_equal(attention(q_, k_, v_, {.mask = mask, .bias = bias}),
               by_softmax(q_, k_, v_, where(mask, bias, -1e30)));
}

TEST_F(MaskedAttention, OfFewerHeadsOfKeysIsThatOfAllHeads) {
  const Tensor keys = slice(k_, 1, 0, 1);
  const Tensor values = slice(v_, 1, 0, 1);
  const Tensor mask = greater(waves({2, 2, 1, 7}, 1), -0.5);
  expect_equal(attention(q_, keys, values, {.mask = mask, .enable_gqa = true}),
               attention(q_, cat({keys, keys}, 1), cat({values, values}, 1), {.mask = mask}));
}

TEST_F(MaskedAttention, HasNoScoresInMemory) {
  const Parameter q = make_parameter("q", wave({2, 2, 5, 4}, 0), {2, 2, 5, 4});
  const Tensor bias = waves({7}, 1);
  const Tensor mask = greater(waves({2, 1, 1, 7}, 2), -0.5);
  const Tensor y = attention(q, k_, v_, {.causal = true, .mask = mask, .bias = bias});
  grad(sum(y), std::vector<Tensor>{q})[0].to_vector();
  EXPECT_EQ(count(OpKind::attention), 1U);
  EXPECT_EQ(count(OpKind::attention_grad), 1U);
  for (const TensorType& type : runtime_.programs.back().value_types) {
    EXPECT_NE(type.shape, (Shape{2, 2, 5, 7}));
    EXPECT_NE(type.shape, (Shape{5, 7}));
  }
}

TEST_F(MaskedAttention, GivesItsBiasAGradient) {
  const Parameter bias = make_parameter("bias", wave({2, 1, 7}, 1), {2, 1, 7});
  const Parameter other = make_parameter("other", wave({2, 1, 7}, 1), {2, 1, 7});
  const Parameter k = make_parameter("k", wave({2, 2, 7, 4}, 0.3F), {2, 2, 7, 4});
  const Tensor g = waves({2, 2, 5, 4}, 2);
  const std::vector<Tensor> actual =
      grad(sum(attention(q_, k, v_, {.bias = bias}) * g), std::vector<Tensor>{k, bias});
  const std::vector<Tensor> expected =
      grad(sum(by_softmax(q_, k, v_, other) * g), std::vector<Tensor>{k, other});
  for (int i = 0; i < 2; ++i) expect_equal(actual[i], expected[i]);
}

TEST_F(MaskedAttention, OfAQueryWhoseKeysAreAllHiddenIsZeroAndHasAFiniteGradient) {
  const Parameter bias = make_parameter("bias", wave({5, 7}, 1), {5, 7});
  const Tensor mask = not_equal(i32({1, 1, 0, 1, 1}, {5, 1}), 0);
  for (const double dropout : {0.0, 0.25}) {
    const Tensor y = attention(q_, k_, v_, {.mask = mask, .bias = bias, .dropout = dropout});
    const Tensor slope = grad(sum(y), std::vector<Tensor>{bias})[0];
    const Floats result = y.to_vector();
    EXPECT_EQ(Floats(&result[8], &result[12]), Floats(4, 0));
    EXPECT_NE(Floats(&result[12], &result[16]), Floats(4, 0));
    const Floats slopes = slope.to_vector();
    EXPECT_EQ(Floats(&slopes[14], &slopes[21]), Floats(7, 0));
    for (const float element : slopes) EXPECT_TRUE(std::isfinite(element));
  }
}

// Some models add the lowest number to every score; keys that `causal` hides must stay hidden.
TEST_F(MaskedAttention, ABiasOfAllScoresAlikeChangesNothingHoweverLow) {
  const Tensor q = q_ * 0.0;
  for (const double dropout : {0.0, 1e-12}) {
    const auto with_bias = [&](float number) {
      const Parameter bias =
          make_parameter(fmt::format("bias{}{}", number, dropout), Floats(35, number), {5, 7});
      const Tensor y = attention(q, k_, v_, {.causal = true, .bias = bias, .dropout = dropout});
      return std::pair(y, grad(sum(y * y), std::vector<Tensor>{bias})[0]);
    };
    const auto [expected, expected_slope] = with_bias(0);
    for (const float low : {-1e30F, -1e38F, std::numeric_limits<float>::lowest()}) {
      const auto [y, slope] = with_bias(low);
      expect_equal(y, expected);
      expect_equal(slope, expected_slope);
    }
  }
}

}  // namespace
}  // namespace weft::attention_test
