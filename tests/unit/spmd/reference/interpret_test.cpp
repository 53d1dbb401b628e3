#include "spmd/reference/interpret.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "spmd/ops/builder.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::interpret_test {
namespace {

using testing::expect_error;
using Dims = std::vector<std::int64_t>;

constexpr double kInfinity = INFINITY;

/// Builds a program on constant inputs and runs it.
class InterpretTest : public ::testing::Test {
 protected:
  ValueId input(DType dtype, const Shape& shape, Elements elements) {
    inputs_.push_back(std::move(elements));
    return program_.add_input({dtype, shape}, InputKind::data, "x", {});
  }
  ValueId f64(const Shape& shape, Elements elements) {
    return input(DType::f64, shape, std::move(elements));
  }
  Elements run(ValueId value) {
    program_.outputs.clear();
    program_.add_output(value, "y", {});
    return interpret(program_, inputs_).at(0);
  }

  Program program_;
  Builder builder_{program_};
  std::vector<Elements> inputs_;
};

TEST_F(InterpretTest, IntegersWrapAndConversionsSaturate) {
  const ValueId x = input(DType::u8, {2}, {200, 3});
  const ValueId y = input(DType::u8, {2}, {100, 5});
  EXPECT_EQ(run(builder_.binary(OpKind::add, x, y)), (Elements{44, 8}));
  EXPECT_EQ(run(builder_.binary(OpKind::subtract, y, x)), (Elements{156, 2}));
  EXPECT_EQ(run(builder_.unary(OpKind::negate, y)), (Elements{156, 251}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{0})),
            (Elements{203}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::min, x, std::array<std::int64_t, 1>{0})),
            (Elements{3}));
  const ValueId z = input(DType::i32, {4}, {300, -7, 2147483647, -2147483648.0});
  EXPECT_EQ(run(builder_.convert(z, DType::u8)), (Elements{255, 0, 255, 0}));
  EXPECT_EQ(run(builder_.convert(z, DType::i8)), (Elements{127, -7, 127, -128}));
  EXPECT_EQ(run(builder_.binary(OpKind::add, z, z)), (Elements{600, -14, -2, 0}));
}

TEST_F(InterpretTest, Constants) {
  EXPECT_EQ(run(builder_.constant(2.5, {DType::f32, {2, 2}})), (Elements{2.5, 2.5, 2.5, 2.5}));
  const std::array<std::int32_t, 3> elements{1, -2, 3};
  EXPECT_EQ(run(builder_.constant(std::as_bytes(std::span(elements)), {DType::i32, {3}})),
            (Elements{1, -2, 3}));
  EXPECT_EQ(run(builder_.constant(3, {DType::pred, {1}})), (Elements{1}));
}

TEST_F(InterpretTest, Iota) {
  EXPECT_EQ(run(builder_.iota({DType::i32, {2, 3}}, 0)), (Elements{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(run(builder_.iota({DType::f32, {2, 3}}, 1)), (Elements{0, 1, 2, 0, 1, 2}));
}

TEST_F(InterpretTest, Slice) {
  const ValueId x = f64({3, 4}, {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23});
  EXPECT_EQ(run(builder_.slice(x, Dims{1, 0}, Dims{3, 4}, Dims{1, 1})),
            (Elements{10, 11, 12, 13, 20, 21, 22, 23}));
  EXPECT_EQ(run(builder_.slice(x, Dims{0, 1}, Dims{3, 4}, Dims{2, 2})), (Elements{1, 3, 21, 23}));
  EXPECT_EQ(run(builder_.slice(x, Dims{2, 4}, Dims{3, 4}, Dims{1, 1})), (Elements{}));
}

TEST_F(InterpretTest, Pad) {
  const ValueId x = f64({2, 2}, {1, 2, 3, 4});
  const ValueId nine = builder_.constant(9, {DType::f64, {}});
  EXPECT_EQ(run(builder_.pad(x, nine, Dims{1, 0}, Dims{0, 1}, Dims{0, 0})),
            (Elements{9, 9, 9, 1, 2, 9, 3, 4, 9}));
  EXPECT_EQ(run(builder_.pad(x, nine, Dims{0, 0}, Dims{0, 0}, Dims{1, 2})),
            (Elements{1, 9, 9, 2, 9, 9, 9, 9, 3, 9, 9, 4}));
}

TEST_F(InterpretTest, Concatenate) {
  const ValueId x = f64({2, 2}, {1, 2, 3, 4});
  const ValueId y = f64({2, 1}, {5, 6});
  EXPECT_EQ(run(builder_.concatenate(std::array{x, y, x}, 1)),
            (Elements{1, 2, 5, 1, 2, 3, 4, 6, 3, 4}));
  EXPECT_EQ(run(builder_.concatenate(std::array{x, x}, 0)), (Elements{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(run(builder_.concatenate(std::vector<ValueId>(70, y), 0)).size(), 140U);
}

TEST_F(InterpretTest, Unary) {
  const ValueId x = f64({3}, {-2, 0, 4});
  const auto unary = [&](OpKind kind) { return run(builder_.unary(kind, x)); };
  EXPECT_EQ(unary(OpKind::negate), (Elements{2, 0, -4}));
  EXPECT_EQ(unary(OpKind::sign), (Elements{-1, 0, 1}));
  EXPECT_EQ(unary(OpKind::abs), (Elements{2, 0, 4}));
  EXPECT_EQ(unary(OpKind::sine), (Elements{std::sin(-2.0), 0, std::sin(4.0)}));
  EXPECT_EQ(unary(OpKind::cosine), (Elements{std::cos(-2.0), 1, std::cos(4.0)}));
  EXPECT_EQ(unary(OpKind::exponential), (Elements{std::exp(-2.0), 1, std::exp(4.0)}));
  EXPECT_EQ(unary(OpKind::tanh), (Elements{std::tanh(-2.0), 0, std::tanh(4.0)}));
  EXPECT_DOUBLE_EQ(unary(OpKind::logistic)[2], 0.98201379003790845);
  EXPECT_EQ(unary(OpKind::logistic)[1], 0.5);
  EXPECT_EQ(unary(OpKind::sqrt)[2], 2);
  EXPECT_EQ(unary(OpKind::rsqrt)[2], 0.5);
  EXPECT_EQ(unary(OpKind::log)[1], -kInfinity);
  EXPECT_TRUE(std::isnan(unary(OpKind::log)[0]));
}

TEST_F(InterpretTest, Convert) {
  const ValueId x = f64({4}, {-2.7, 0, 2.7, 1e10});
  EXPECT_EQ(run(builder_.convert(x, DType::i32)), (Elements{-2, 0, 2, 2147483647}));
  EXPECT_EQ(run(builder_.convert(x, DType::pred)), (Elements{1, 0, 1, 1}));
  EXPECT_EQ(run(builder_.convert(x, DType::bf16)), (Elements{-2.7, 0, 2.7, 1e10}));
}

TEST_F(InterpretTest, Binary) {
  const ValueId a = f64({3}, {7, -7, 0});
  const ValueId b = f64({3}, {2, 2, -1});
  const auto binary = [&](OpKind kind) { return run(builder_.binary(kind, a, b)); };
  EXPECT_EQ(binary(OpKind::add), (Elements{9, -5, -1}));
  EXPECT_EQ(binary(OpKind::subtract), (Elements{5, -9, 1}));
  EXPECT_EQ(binary(OpKind::multiply), (Elements{14, -14, 0}));
  EXPECT_EQ(binary(OpKind::divide), (Elements{3.5, -3.5, 0}));
  EXPECT_EQ(binary(OpKind::maximum), (Elements{7, 2, 0}));
  EXPECT_EQ(binary(OpKind::minimum), (Elements{2, -7, -1}));
  EXPECT_EQ(binary(OpKind::power), (Elements{49, 49, kInfinity}));
}

TEST_F(InterpretTest, IntegerDivisionTruncates) {
  const ValueId a = input(DType::i32, {2}, {7, -7});
  const ValueId b = input(DType::i32, {2}, {2, 2});
  EXPECT_EQ(run(builder_.binary(OpKind::divide, a, b)), (Elements{3, -3}));
}

TEST_F(InterpretTest, NanWinsInMaximumAndMinimum) {
  const ValueId a = f64({2}, {NAN, 1});
  const ValueId b = f64({2}, {1, NAN});
  for (const OpKind kind : {OpKind::maximum, OpKind::minimum}) {
    for (const double element : run(builder_.binary(kind, a, b))) EXPECT_TRUE(std::isnan(element));
  }
}

TEST_F(InterpretTest, CompareAndSelect) {
  const ValueId a = f64({4}, {1, 2, 3, NAN});
  const ValueId b = f64({4}, {2, 2, 2, 2});
  const auto compare = [&](CompareDirection direction) {
    return run(builder_.compare(direction, a, b));
  };
  EXPECT_EQ(compare(CompareDirection::eq), (Elements{0, 1, 0, 0}));
  EXPECT_EQ(compare(CompareDirection::ne), (Elements{1, 0, 1, 1}));
  EXPECT_EQ(compare(CompareDirection::lt), (Elements{1, 0, 0, 0}));
  EXPECT_EQ(compare(CompareDirection::le), (Elements{1, 1, 0, 0}));
  EXPECT_EQ(compare(CompareDirection::gt), (Elements{0, 0, 1, 0}));
  EXPECT_EQ(compare(CompareDirection::ge), (Elements{0, 1, 1, 0}));
  const ValueId less = builder_.compare(CompareDirection::lt, a, b);
  const ValueId most = builder_.compare(CompareDirection::le, a, b);
  EXPECT_EQ(run(builder_.binary(OpKind::logical_and, less, most)), (Elements{1, 0, 0, 0}));
  EXPECT_EQ(run(builder_.select(most, a, b)), (Elements{1, 2, 2, 2}));
}

TEST_F(InterpretTest, ShapeOps) {
  const ValueId x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(builder_.reshape(x, {3, 2})), (Elements{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run(builder_.transpose(x, Dims{1, 0})), (Elements{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run(builder_.broadcast_in_dim(f64({3}, {7, 8, 9}), {2, 3}, Dims{1})),
            (Elements{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(run(builder_.broadcast_in_dim(f64({2, 1}, {7, 8}), {2, 3}, Dims{0, 1})),
            (Elements{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(run(builder_.broadcast_in_dim(f64({}, {5}), {2}, {})), (Elements{5, 5}));
  EXPECT_EQ(run(builder_.copy(x)), (Elements{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run(builder_.sharding_constraint(x, Sharding::open(2))), (Elements{1, 2, 3, 4, 5, 6}));
}

TEST_F(InterpretTest, ReverseAndIsFinite) {
  const ValueId x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(builder_.reverse(x, Dims{1})), (Elements{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(run(builder_.reverse(x, Dims{0})), (Elements{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(run(builder_.reverse(x, Dims{0, 1})), (Elements{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(run(builder_.reverse(x, {})), (Elements{1, 2, 3, 4, 5, 6}));
  const ValueId y = f64({4}, {1, kInfinity, -kInfinity, NAN});
  EXPECT_EQ(run(builder_.unary(OpKind::is_finite, y)), (Elements{1, 0, 0, 0}));
}

TEST_F(InterpretTest, GatherGivesZerosForAnIndexOutside) {
  const ValueId table = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  const ValueId index = input(DType::i32, {2, 2}, {2, -1, 3, 0});
  EXPECT_EQ(run(builder_.gather(table, index)), (Elements{5, 6, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(run(builder_.gather(table, input(DType::i32, {}, {1}))), (Elements{3, 4}));
}

TEST_F(InterpretTest, ScatterAddsWhatHasOneIndexAndDropsWhatIsOutside) {
  const ValueId index = input(DType::i32, {5}, {1, 3, 1, -1, 0});
  const ValueId updates = f64({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_EQ(run(builder_.scatter(index, updates, 3)), (Elements{9, 10, 6, 8, 0, 0}));
  const ValueId one = input(DType::i32, {}, {2});
  EXPECT_EQ(run(builder_.scatter(one, f64({}, {7}), 3)), (Elements{0, 0, 7}));
}

TEST_F(InterpretTest, DynamicSlicesClampTheirStart) {
  const ValueId x = f64({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto at = [&](double row, double column) {
    return std::array{input(DType::i32, {}, {row}), input(DType::i32, {}, {column})};
  };
  EXPECT_EQ(run(builder_.dynamic_slice(x, at(0, 1), Dims{1, 2})), (Elements{2, 3}));
  EXPECT_EQ(run(builder_.dynamic_slice(x, at(9, 3), Dims{1, 2})), (Elements{7, 8}));
  EXPECT_EQ(run(builder_.dynamic_slice(x, at(-1, -9), Dims{2, 2})), (Elements{1, 2, 5, 6}));
  const ValueId update = f64({2, 2}, {10, 20, 30, 40});
  EXPECT_EQ(run(builder_.dynamic_update_slice(x, update, at(1, 1))),
            (Elements{1, 10, 20, 4, 5, 30, 40, 8}));
  EXPECT_EQ(run(builder_.dynamic_update_slice(x, update, at(0, 7))),
            (Elements{1, 2, 10, 20, 5, 6, 30, 40}));
}

TEST_F(InterpretTest, RngBitGeneratorGivesThePublishedNumbersOfPhilox) {
  // The expected numbers are those of philox_test.cpp for key {0, 0} and counter {0, 0, 0, 0}; the
  // next four numbers have counter 1.
  const ValueId zeros = input(DType::u32, {4}, {0, 0, 0, 0});
  const Elements words = run(builder_.rng_bit_generator(zeros, {2, 3}));
  EXPECT_EQ(Elements(words.begin(), words.begin() + 4),
            (Elements{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const Elements flat = run(builder_.rng_bit_generator(zeros, {6}));
  EXPECT_EQ(flat, words);
  const ValueId other = input(DType::u32, {4}, {0, 0, 1, 0});
  EXPECT_NE(run(builder_.rng_bit_generator(other, {6})), words);
}

TEST_F(InterpretTest, TransposesThreeDims) {
  const ValueId x = f64({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  // result[i, j, k] = x[j, k, i]
  EXPECT_EQ(run(builder_.transpose(x, Dims{2, 0, 1})), (Elements{1, 4, 2, 5, 3, 6}));
}

TEST_F(InterpretTest, DotGeneralMultipliesMatrices) {
  const ValueId a = f64({2, 2}, {1, 2, 3, 4});
  const ValueId b = f64({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(run(builder_.dot_general(a, b, {{}, {}, {1}, {0}})), (Elements{19, 22, 43, 50}));
  EXPECT_EQ(run(builder_.dot_general(a, b, {{}, {}, {1}, {1}})), (Elements{17, 23, 39, 53}));
  EXPECT_EQ(run(builder_.dot_general(a, b, {{}, {}, {0, 1}, {0, 1}})), (Elements{70}));
  EXPECT_EQ(run(builder_.dot_general(f64({2}, {1, 2}), f64({2}, {3, 4}), {})),
            (Elements{3, 4, 6, 8}));
}

TEST_F(InterpretTest, DotGeneralKeepsBatchesApart) {
  // Multiplies a[b, m, k] by b[k, b]: the result is [b, m].
  const ValueId a = f64({2, 1, 2}, {1, 2, 3, 4});
  const ValueId b = f64({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(run(builder_.dot_general(a, b, {{0}, {1}, {2}, {0}})), (Elements{19, 50}));
}

TEST_F(InterpretTest, Reduce) {
  const ValueId x = f64({2, 3}, {1, -2, 3, 4, 5, -6});
  EXPECT_EQ(run(builder_.reduce(ReduceKind::add, x, Dims{0})), (Elements{5, 3, -3}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::add, x, Dims{1})), (Elements{2, 3}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::max, x, Dims{0, 1})), (Elements{5}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::min, x, Dims{1})), (Elements{-2, -6}));
}

TEST_F(InterpretTest, ReducesNothingToTheNeutralElement) {
  const ValueId x = f64({0}, {});
  EXPECT_EQ(run(builder_.reduce(ReduceKind::add, x, Dims{0})), (Elements{0}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::max, x, Dims{0})), (Elements{-kInfinity}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::min, x, Dims{0})), (Elements{kInfinity}));
  const ValueId integers = input(DType::i32, {0}, {});
  EXPECT_EQ(run(builder_.reduce(ReduceKind::max, integers, Dims{0})), (Elements{-2147483648.0}));
  const ValueId predicates = input(DType::pred, {0}, {});
  EXPECT_EQ(run(builder_.reduce(ReduceKind::max, predicates, Dims{0})), (Elements{0}));
  EXPECT_EQ(run(builder_.reduce(ReduceKind::min, predicates, Dims{0})), (Elements{1}));
}

/// Returns a convolution of a row x[1,1,n] with weights w[1,1,k].
Convolution row(const WindowDim& window, bool reversed) {
  return {.lhs = {0, 1, 2},
          .rhs = {0, 1, 2},
          .result = {0, 1, 2},
          .window = {window},
          .reversed = reversed};
}

TEST_F(InterpretTest, ConvolutionOfARow) {
  const ValueId x = f64({1, 1, 4}, {1, 2, 3, 4});
  const ValueId w = f64({1, 1, 3}, {100, 10, 1});
  const auto of = [&](const WindowDim& window, bool reversed = false) {
    return run(builder_.convolution(x, w, row(window, reversed)));
  };
  EXPECT_EQ(of({}), (Elements{123, 234}));
  EXPECT_EQ(of({}, true), (Elements{321, 432}));
  EXPECT_EQ(of({.low = 1, .high = 1}), (Elements{12, 123, 234, 340}));
  EXPECT_EQ(of({.stride = 2, .low = 2}), (Elements{1, 123}));
  EXPECT_EQ(of({.low = -1}), (Elements{234}));
  EXPECT_EQ(of({.high = -1}), (Elements{123}));
  EXPECT_EQ(of({.base_dilation = 2}), (Elements{102, 20, 203, 30, 304}));
  EXPECT_EQ(of({.low = 1, .high = 1, .dilation = 2}), (Elements{24, 130}));
  EXPECT_EQ(of({.high = -3}), (Elements{}));
}

TEST_F(InterpretTest, ConvolutionSumsFeaturesAndKeepsBatchesAndGroupsApart) {
  // The operands are x[batch, feature, 2, 2] and w[output, feature, 1, 2].
  const ValueId x = f64({2, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80});
  const ValueId w = f64({2, 2, 1, 2}, {1, 0, 0, 1, 1, 1, -1, 0});
  const Convolution plain{.lhs = {0, 1, 2, 3},
                          .rhs = {1, 0, 2, 3},
                          .result = {0, 1, 2, 3},
                          .window = {WindowDim{}, WindowDim{}}};
  EXPECT_EQ(run(builder_.convolution(x, w, plain)),
            (Elements{1 + 6, 3 + 8, 3 - 5, 7 - 7, 10 + 60, 30 + 80, 30 - 50, 70 - 70}));
  Convolution moved = plain;
  moved.result = {3, 0, 1, 2};
  EXPECT_EQ(run(builder_.convolution(x, w, moved)), (Elements{7, 70, 11, 110, -2, -20, 0, 0}));
  // With groups, the operands are x[batch, group, feature, 2] and w[group, output, feature, 1], and
  // the result is [batch, output, group, 2].
  const Convolution grouped{.lhs = {0, 2, 3},
                            .rhs = {2, 1, 3},
                            .result = {0, 1, 3},
                            .window = {WindowDim{}},
                            .group = {1, 0, 2}};
  EXPECT_EQ(run(builder_.convolution(x, f64({2, 1, 2, 1}, {1, 10, 2, 0}), grouped)),
            (Elements{31, 42, 10, 12, 310, 420, 100, 120}));
}

TEST_F(InterpretTest, ReduceWindow) {
  const ValueId x = f64({5}, {3, -1, 4, 1, 5});
  const auto of = [&](ReduceKind kind, const WindowDim& window) {
    return run(builder_.reduce_window(x, {kind, {window}}));
  };
  EXPECT_EQ(of(ReduceKind::add, {.size = 2}), (Elements{2, 3, 5, 6}));
  EXPECT_EQ(of(ReduceKind::max, {.size = 3, .stride = 2}), (Elements{4, 5}));
  EXPECT_EQ(of(ReduceKind::min, {.size = 2, .stride = 2, .low = 1}), (Elements{3, -1, 1}));
  EXPECT_EQ(of(ReduceKind::add, {.size = 2, .dilation = 3}), (Elements{4, 4}));
  EXPECT_EQ(of(ReduceKind::add, {.size = 3, .high = -3, .base_dilation = 2}),
            (Elements{2, -1, 3, 4}));
  EXPECT_EQ(of(ReduceKind::max, {.low = 1}), (Elements{-kInfinity, 3, -1, 4, 1, 5}));
  const ValueId square = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(builder_.reduce_window(square, {ReduceKind::add, {{.size = 2}, {.size = 2}}})),
            (Elements{12, 16}));
}

TEST_F(InterpretTest, SelectAndScatterAddsToTheFirstExtremum) {
  const auto of = [&](ReduceKind kind, const Elements& x, const Elements& y,
                      const WindowDim& window) {
    const ValueId values = f64({static_cast<std::int64_t>(x.size())}, x);
    const ValueId added = f64({static_cast<std::int64_t>(y.size())}, y);
    return run(builder_.select_and_scatter(values, added, {kind, {window}}));
  };
  EXPECT_EQ(of(ReduceKind::max, {1, 5, 2, 5}, {10, 20, 30}, {.size = 2}), (Elements{0, 30, 0, 30}));
  EXPECT_EQ(of(ReduceKind::min, {1, 1, 1, 1}, {10, 20}, {.size = 2, .stride = 2}),
            (Elements{10, 0, 20, 0}));
  EXPECT_EQ(of(ReduceKind::max, {1, NAN, NAN, 9}, {10, 20, 30}, {.size = 2}),
            (Elements{0, 30, 30, 0}));
  EXPECT_EQ(of(ReduceKind::max, {1, 2}, {10, 20, 30, 40}, {.size = 1, .low = 1, .high = 1}),
            (Elements{20, 30}));
}

TEST_F(InterpretTest, RefusesAChipsProgram) {
  const Mesh mesh({2}, {"x"});
  const ValueId x = f64({2}, {1, 2});
  const ValueId y = builder_.all_reduce(mesh, x, {1}, ReduceKind::add);
  expect_error(Errc::invalid_argument, {"op 0", "all_reduce", "simulate"}, [&] { run(y); });
}

TEST_F(InterpretTest, RefusesInputsThatDoNotFit) {
  const ValueId x = f64({2}, {1, 2, 3});
  expect_error(Errc::invalid_argument, {"input 0 \"x\"", "f64[2]", "3 elements"}, [&] { run(x); });
  inputs_.clear();
  expect_error(Errc::invalid_argument, {"0 inputs", "has 1"}, [&] { run(x); });
}

}  // namespace
}  // namespace weft::interpret_test
