#include <gtest/gtest.h>

#include <cmath>

#include "spmd/ops/builder.hpp"
#include "spmd/reference/interpret.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::composite_test {
namespace {

using testing::expect_error;

class Composites : public ::testing::Test {
 protected:
  ValueId input(DType dtype, const Shape& shape, Elements elements = {}) {
    inputs_.push_back(std::move(elements));
    return program_.add_input({dtype, shape}, InputKind::data, "x", {});
  }
  ValueId f64(const Shape& shape, Elements elements = {}) {
    return input(DType::f64, shape, std::move(elements));
  }
  const TensorType& type(ValueId value) const { return program_.type(value); }
  void expect_elements(ValueId value, const Elements& expected) {
    program_.outputs.clear();
    program_.add_output(value, "y", {});
    const Elements actual = interpret(program_, inputs_).at(0);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12);
  }
  template <typename Body>
  void rejects(std::initializer_list<std::string_view> words, Body body) {
    expect_error(Errc::invalid_argument, words, body);
  }

  Program program_;
  Builder b_{program_};
  std::vector<Elements> inputs_;
};

TEST_F(Composites, SoftmaxOfARow) {
  const double ln3 = std::log(3.0);
  const ValueId x = f64({2, 2}, {7, 7 + ln3, 0, -INFINITY});
  const ValueId y = b_.softmax(x);
  EXPECT_EQ(type(y), type(x));
  expect_elements(y, {0.25, 0.75, 1, 0});
  const ValueId log = b_.log_softmax(f64({2}, {1000, 1000 + ln3}));
  expect_elements(log, {std::log(0.25), std::log(0.75)});
  const ValueId g = f64({2}, {1, 3});
  const ValueId half = f64({2}, {0.5, 0.5});
  expect_elements(b_.softmax_grad(OpKind::softmax_grad, half, g), {-0.5, 0.5});
  expect_elements(b_.softmax_grad(OpKind::log_softmax_grad, b_.unary(OpKind::log, half), g),
                  {-1, 1});
}

TEST_F(Composites, CrossEntropyIsTheLogOfTheSumLessTheLabelsElement) {
  const double ln3 = std::log(3.0);
  const ValueId x = f64({4, 2}, {7, 7 + ln3, 1000, 1000 + ln3, 1, 2, 1, 2});
  const ValueId labels = input(DType::i32, {4}, {0, 1, -1, 2});
  expect_elements(b_.cross_entropy(x, labels), {std::log(4.0), std::log(4.0 / 3), 0, 0});
  const ValueId g = f64({4}, {8, 4, 5, 6});
  expect_elements(b_.cross_entropy_grad(x, labels, g), {-6, 6, 1, -1, 0, 0, 0, 0});
}

TEST_F(Composites, NormalizeMakesTheMeanSquareOne) {
  const ValueId x = f64({2}, {1, 7});
  expect_elements(b_.normalize(x, {.center = true, .eps = 0}), {-1, 1});
  expect_elements(b_.normalize(x, {.center = true, .eps = 91}), {-0.3, 0.3});
  expect_elements(b_.normalize(x, {.center = false, .eps = 0}), {0.2, 1.4});
  // Shifting or scaling x doesn't change the result, so the gradient has no component in these
  // directions.
  const ValueId g = f64({2}, {2, 6});
  expect_elements(b_.normalize_grad(x, g, {.center = true, .eps = 0}), {0, 0});
  expect_elements(b_.normalize_grad(x, x, {.center = false, .eps = 0}), {0, 0});
}

TEST_F(Composites, AttentionMixesTheValuesThatAQuerySees) {
  const ValueId q = f64({1, 1, 2, 1}, {0, std::log(3.0)});
  const ValueId k = f64({1, 1, 2, 1}, {0, 2});
  const ValueId v = f64({1, 1, 2, 2}, {1, 10, 5, 50});
  expect_elements(b_.attention(q, k, v, {.causal = false, .scale = 0.5}), {3, 30, 4, 40});
  expect_elements(b_.attention(q, k, v, {.causal = true, .scale = 0.5}), {1, 10, 4, 40});
  const ValueId one = f64({1, 1, 1, 1}, {1});
  const ValueId y = b_.attention(one, k, k, {.causal = true});
  // The query sees only one key, so the whole gradient goes to that key's value.
  expect_elements(b_.attention_grad(one, k, k, y, one, {.causal = true}), {0, 0, 0, 1, 0});
}

TEST_F(Composites, AttentionAddsABiasOrSeesWhatAMaskShows) {
  const double ln3 = std::log(3.0);
  const ValueId q = f64({1, 1, 2, 1}, {0, ln3});
  const ValueId k = f64({1, 1, 2, 1}, {0, 2});
  const ValueId v = f64({1, 1, 2, 2}, {1, 10, 5, 50});
  const auto mask = [&](const Shape& shape, Elements sees) {
    return input(DType::pred, shape, std::move(sees));
  };
  const AttentionForm form{.scale = 0.5};
  const AttentionForm causal{.causal = true, .scale = 0.5};
  expect_elements(b_.attention(q, k, v, form, f64({1, 1, 1, 2}, {ln3, 0})), {2, 20, 3, 30});
  expect_elements(b_.attention(q, k, v, form, mask({1, 1, 1, 2}, {1, 0})), {1, 10, 1, 10});
  // These masks hide all keys from some queries.
  expect_elements(b_.attention(q, k, v, form, mask({1, 1, 2, 1}, {0, 1})), {0, 0, 4, 40});
  expect_elements(b_.attention(q, k, v, causal, mask({1, 1, 1, 2}, {0, 1})), {0, 0, 5, 50});
  const ValueId hides = f64({1, 1, 2, 2}, {-INFINITY, -INFINITY, 0, -INFINITY});
  expect_elements(b_.attention(q, k, v, form, hides), {0, 0, 1, 10});
  const ValueId one = f64({1, 1, 1, 1}, {1});
  const auto grad = [&](Elements sees) {
    const ValueId seen = mask({1, 1, 1, 2}, std::move(sees));
    return b_.attention_grad(one, k, k, b_.attention(one, k, k, {}, seen), one, {}, seen);
  };
  expect_elements(grad({1, 0}), {0, 0, 0, 1, 0});
  expect_elements(grad({0, 0}), {0, 0, 0, 0, 0});
}

TEST_F(Composites, AttentionNeedsABiasThatFits) {
  const ValueId q = f64({2, 3, 5, 4});
  const ValueId k = f64({2, 3, 7, 4});
  const ValueId y = b_.attention(q, k, k, {}, input(DType::pred, {2, 1, 1, 7}));
  EXPECT_EQ(type(y).shape, (Shape{2, 3, 5, 4}));
  rejects({"attention", "the bias f32[1,1,1,7] must be pred or f64"}, [&] {
    b_.attention(q, k, k, {}, input(DType::f32, {1, 1, 1, 7}));
  });
  rejects({"attention", "the bias f64[1,1,7,7]", "the scores f64[2,3,5,7]"}, [&] {
    b_.attention(q, k, k, {}, f64({1, 1, 7, 7}));
  });
  rejects({"attention", "the bias f64[5,7]"}, [&] { b_.attention(q, k, k, {}, f64({5, 7})); });
  rejects({"attention_grad", "the bias pred[1,2,1,1]"}, [&] {
    b_.attention_grad(q, k, k, y, y, {}, input(DType::pred, {1, 2, 1, 1}));
  });
}

TEST_F(Composites, OfRowsNeedAFloatingRow) {
  const ValueId x = f64({2, 3});
  rejects({"softmax(i32[3])", "floating dtype", "one dim"},
          [&] { b_.softmax(input(DType::i32, {3})); });
  rejects({"log_softmax(f64[])", "one dim"}, [&] { b_.log_softmax(f64({})); });
  rejects({"softmax_grad", "f64[2,3] and f64[3]", "one type"},
          [&] { b_.softmax_grad(OpKind::softmax_grad, x, f64({3})); });
  rejects({"normalize", "eps is -1", "0 or more"}, [&] { b_.normalize(x, {.eps = -1}); });
  rejects({"normalize_grad", "eps is nan"}, [&] { b_.normalize_grad(x, x, {.eps = NAN}); });
}

TEST_F(Composites, CrossEntropyNeedsALabelForEachRow) {
  const ValueId x = f64({2, 3});
  const ValueId labels = input(DType::i32, {2});
  EXPECT_EQ(type(b_.cross_entropy(x, labels)), (TensorType{DType::f64, {2}}));
  rejects({"cross_entropy(f64[2,3], i32[3])", "labels i32[..]"},
          [&] { b_.cross_entropy(x, input(DType::i32, {3})); });
  rejects({"cross_entropy", "labels i32[..]"},
          [&] { b_.cross_entropy(x, input(DType::i64, {2})); });
  rejects({"cross_entropy", "floating dtype"}, [&] { b_.cross_entropy(labels, labels); });
  rejects({"cross_entropy_grad", "cotangent must be f64[2]"},
          [&] { b_.cross_entropy_grad(x, labels, input(DType::f32, {2})); });
}

TEST_F(Composites, AttentionNeedsHeadsThatFit) {
  const ValueId q = f64({2, 3, 5, 4});
  const ValueId k = f64({2, 3, 7, 4});
  const ValueId v = f64({2, 3, 7, 6});
  const ValueId y = b_.attention(q, k, v, {});
  EXPECT_EQ(type(y).shape, (Shape{2, 3, 5, 6}));
  const ValueId square = b_.attention(q, k, k, {});
  EXPECT_EQ(type(b_.attention_grad(q, k, k, square, square, {})).shape, (Shape{2, 3, 19, 4}));
  rejects({"attention(f64[2,3,5,4], f64[2,3,7,6]", "[B,H,T,K]"},
          [&] { b_.attention(q, v, v, {}); });
  rejects({"attention", "[B,H,T,E]"}, [&] { b_.attention(q, k, q, {}); });
  rejects({"attention", "one floating dtype"}, [&] {
    b_.attention(q, k, input(DType::f32, {2, 3, 7, 6}), {});
  });
  rejects({"attention", "no keys"}, [&] {
    b_.attention(q, f64({2, 3, 0, 4}), f64({2, 3, 0, 4}), {});
  });
  rejects({"attention", "scale is inf"}, [&] { b_.attention(q, k, v, {.scale = INFINITY}); });
  rejects({"attention_grad", "keys of 4 and values of 6"},
          [&] { b_.attention_grad(q, k, v, y, y, {}); });
  rejects({"attention_grad", "cotangent must be f64[2,3,5,4]"},
          [&] { b_.attention_grad(q, k, k, square, k, {}); });
}

}  // namespace
}  // namespace weft::composite_test
