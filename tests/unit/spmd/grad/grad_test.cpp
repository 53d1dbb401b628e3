#include "spmd/grad/grad.hpp"

#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "spmd/passes/canonicalize.hpp"
#include "spmd/reference/interpret.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::grad_test {
namespace {

constexpr std::uint32_t kSeed = 7;
constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-6;

TensorType f64(const Shape& shape) { return {DType::f64, shape}; }

/// A function under test. It appends its ops to the builder's program and returns the result.
using Function = std::function<ValueId(Builder&, std::span<const ValueId>)>;

struct Case {
  std::vector<Shape> shapes;  ///< the shapes of the inputs
  Function function;
  double low = -2;  ///< the least element of random inputs
  double high = 2;
};

Elements random_elements(std::mt19937& random, const Shape& shape, double low, double high) {
  std::uniform_real_distribution<double> distribution(low, high);
  Elements elements(static_cast<std::size_t>(shape.num_elements()));
  for (double& element : elements) element = distribution(random);
  return elements;
}

/// Returns sum(result * w) with a random constant w, so that each element of the result has another
/// weight.
ValueId weighted_sum(Builder& builder, ValueId result, std::mt19937& random) {
  const TensorType type = builder.type(result);
  const Elements weights = random_elements(random, type.shape, 0.5, 1.5);
  const ValueId w = builder.constant(std::as_bytes(std::span(weights)), type);
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < type.shape.size(); ++dim) dims.push_back(dim);
  return builder.reduce(ReduceKind::add, builder.binary(OpKind::multiply, result, w), dims);
}

/// Compares (f(x + e v) - f(x - e v)) / 2e with the product of the gradient and v, for a random
/// direction v.
void expect_gradient(const Case& c) {
  std::mt19937 random(kSeed);
  Program program;
  Builder builder(program);
  std::vector<ValueId> inputs;
  std::vector<Elements> at;
  std::vector<Elements> direction;
  for (const Shape& shape : c.shapes) {
    inputs.push_back(program.add_input(f64(shape), InputKind::data, "x", Sharding::closed()));
    at.push_back(random_elements(random, shape, c.low, c.high));
    direction.push_back(random_elements(random, shape, -1, 1));
  }
  const ValueId loss = weighted_sum(builder, c.function(builder, inputs), random);
  program.add_output(loss, "loss", Sharding::closed());
  for (const ValueId g : grad(builder, loss, inputs)) {
    program.add_output(g, "grad", Sharding::closed());
  }

  const std::vector<Elements> outputs = interpret(program, at);
  double expected = 0;
  double scale = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    ASSERT_EQ(outputs[i + 1].size(), at[i].size());
    for (std::size_t j = 0; j < at[i].size(); ++j) {
      expected += outputs[i + 1][j] * direction[i][j];
      scale += std::abs(outputs[i + 1][j] * direction[i][j]);
    }
  }
  const auto loss_at = [&](double step) {
    std::vector<Elements> moved = at;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      for (std::size_t j = 0; j < moved[i].size(); ++j) moved[i][j] += step * direction[i][j];
    }
    return interpret(program, moved)[0][0];
  };
  const double difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  EXPECT_NEAR(difference, expected, kTolerance * scale + 1e-9) << "seed " << kSeed;
}

Function unary(OpKind kind) {
  return [kind](Builder& b, std::span<const ValueId> x) { return b.unary(kind, x[0]); };
}

Function binary(OpKind kind) {
  return [kind](Builder& b, std::span<const ValueId> x) { return b.binary(kind, x[0], x[1]); };
}

const std::vector<Shape> kShapes{{}, {1}, {7}, {3, 4}, {2, 1, 5}, {2, 3, 1, 2}};

class UnaryGrad : public ::testing::TestWithParam<OpKind> {};

TEST_P(UnaryGrad, MatchesTheDifferenceQuotient) {
  const OpKind kind = GetParam();
  const bool positive = kind == OpKind::log || kind == OpKind::sqrt || kind == OpKind::rsqrt;
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    expect_gradient({.shapes = {shape}, .function = unary(kind), .low = positive ? 0.2 : -2});
  }
}

std::string name_of(const ::testing::TestParamInfo<OpKind>& info) {
  return std::string(to_string(info.param));
}

INSTANTIATE_TEST_SUITE_P(Ops, UnaryGrad,
                         ::testing::Values(OpKind::negate, OpKind::sign, OpKind::abs,
                                           OpKind::exponential, OpKind::log, OpKind::tanh,
                                           OpKind::sine, OpKind::cosine, OpKind::logistic,
                                           OpKind::sqrt, OpKind::rsqrt),
                         name_of);

class BinaryGrad : public ::testing::TestWithParam<OpKind> {};

TEST_P(BinaryGrad, MatchesTheDifferenceQuotient) {
  const OpKind kind = GetParam();
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    const bool positive = kind == OpKind::power || kind == OpKind::divide;
    expect_gradient(
        {.shapes = {shape, shape}, .function = binary(kind), .low = positive ? 0.3 : -2});
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, BinaryGrad,
                         ::testing::Values(OpKind::add, OpKind::subtract, OpKind::multiply,
                                           OpKind::divide, OpKind::maximum, OpKind::minimum,
                                           OpKind::power),
                         name_of);

TEST(Grad, OfAnOperandUsedTwiceAddsBothParts) {
  for (const OpKind kind :
       {OpKind::add, OpKind::subtract, OpKind::multiply, OpKind::divide, OpKind::power}) {
    SCOPED_TRACE(to_string(kind));
    expect_gradient({.shapes = {{3, 2}},
                     .function = [kind](Builder& b, auto x) { return b.binary(kind, x[0], x[0]); },
                     .low = 0.3});
  }
}

TEST(Grad, OfSelectGoesToTheSideTaken) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.to_string());
    expect_gradient({.shapes = {shape, shape, shape}, .function = [](Builder& b, auto x) {
                       const ValueId p = b.compare(CompareDirection::gt, x[0], x[1]);
                       return b.select(p, b.binary(OpKind::multiply, x[1], x[2]), x[2]);
                     }});
  }
}

TEST(Grad, OfReshapeTransposeAndCopy) {
  expect_gradient({.shapes = {{2, 6}}, .function = [](Builder& b, auto x) {
                     return b.copy(b.reshape(b.unary(OpKind::tanh, x[0]), {3, 4}));
                   }});
  const std::vector<std::vector<std::int64_t>> perms{{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& perm : perms) {
    expect_gradient({.shapes = {{2, 3, 4}}, .function = [&](Builder& b, auto x) {
                       return b.transpose(b.binary(OpKind::multiply, x[0], x[0]), perm);
                     }});
  }
}

TEST(Grad, OfSliceGoesBackToWhereItWasTaken) {
  using Dims = std::vector<std::int64_t>;
  for (const Dims& stride : {Dims{1, 1}, Dims{2, 1}, Dims{3, 2}}) {
    expect_gradient(
        {.shapes = {{5, 6}}, .function = [&](Builder& b, auto x) {
           return b.slice(b.binary(OpKind::multiply, x[0], x[0]), Dims{1, 0}, Dims{5, 5}, stride);
         }});
  }
  expect_gradient({.shapes = {{2, 3}}, .function = [](Builder& b, auto x) {
                     return b.slice(x[0], Dims{1, 2}, Dims{1, 3}, Dims{1, 1});
                   }});
}

TEST(Grad, OfPadIsWhatStandsAtTheElementsAndTheRest) {
  using Dims = std::vector<std::int64_t>;
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 1}, Shape{0, 2}}) {
    expect_gradient({.shapes = {shape, {}}, .function = [](Builder& b, auto x) {
                       const ValueId y = b.unary(OpKind::tanh, x[0]);
                       return b.pad(y, x[1], Dims{1, 0}, Dims{2, 1}, Dims{0, 2});
                     }});
  }
}

TEST(Grad, OfConcatenateGoesToTheParts) {
  for (const int dim : {0, 1}) {
    expect_gradient({.shapes = {{2, 3}, {2, 3}, {2, 3}}, .function = [dim](Builder& b, auto x) {
                       const std::vector<ValueId> parts = {x[0], x[1], x[2], x[0]};
                       const ValueId all = b.concatenate(parts, dim);
                       return b.binary(OpKind::multiply, all, all);
                     }});
  }
}

TEST(Grad, OfReverseTurnsBack) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{0}, {1}, {0, 1}, {}}) {
    expect_gradient({.shapes = {{2, 3}}, .function = [&](Builder& b, auto x) {
                       return b.reverse(b.binary(OpKind::multiply, x[0], x[0]), dims);
                     }});
  }
}

ValueId i32_constant(Builder& b, const std::vector<std::int32_t>& elements, const Shape& shape) {
  return b.constant(std::as_bytes(std::span(elements)), {DType::i32, shape});
}

/// Rows 0 and 4 are taken once, row 2 twice, and rows 1 and 3 not at all. -1 and 7 are outside.
const std::vector<std::int32_t> kIndex{2, -1, 0, 2, 4, 7};

TEST(Grad, OfGatherGoesToTheRowsTaken) {
  for (const Shape& shape : {Shape{5}, Shape{5, 3}, Shape{5, 2, 2}, Shape{5, 0}}) {
    expect_gradient({.shapes = {shape}, .function = [](Builder& b, auto x) {
                       const ValueId square = b.binary(OpKind::multiply, x[0], x[0]);
                       return b.gather(square, i32_constant(b, kIndex, {2, 3}));
                     }});
  }
}

TEST(Grad, OfScatterIsWhatStandsAtTheIndex) {
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 4}}) {
    expect_gradient({.shapes = {shape}, .function = [](Builder& b, auto x) {
                       const ValueId sum = b.scatter(i32_constant(b, kIndex, {2, 3}), x[0], 5);
                       return b.binary(OpKind::multiply, sum, sum);
                     }});
  }
}

TEST(Grad, OfDynamicSlices) {
  for (const std::int32_t at : {-3, 0, 1, 9}) {
    const auto starts = [at](Builder& b) {
      return std::array{i32_constant(b, {at}, {}), i32_constant(b, {at + 1}, {})};
    };
    expect_gradient({.shapes = {{4, 5}}, .function = [&](Builder& b, auto x) {
                       const ValueId square = b.binary(OpKind::multiply, x[0], x[0]);
                       return b.dynamic_slice(square, starts(b), std::vector<std::int64_t>{2, 3});
                     }});
    expect_gradient({.shapes = {{4, 5}, {2, 3}}, .function = [&](Builder& b, auto x) {
                       const ValueId y = b.dynamic_update_slice(x[0], x[1], starts(b));
                       return b.binary(OpKind::multiply, y, y);
                     }});
  }
}

TEST(Grad, OfBroadcastSumsNewAndExpandedDims) {
  struct Broadcast {
    Shape from, to;
    std::vector<std::int64_t> dims;
  };
  const std::vector<Broadcast> broadcasts{{{}, {}, {}},
                                          {{}, {2, 3}, {}},
                                          {{3}, {2, 3}, {1}},
                                          {{2}, {2, 3}, {0}},
                                          {{1, 3}, {2, 3}, {0, 1}},
                                          {{1}, {4}, {0}},
                                          {{2, 1}, {5, 2, 3}, {1, 2}},
                                          {{1, 1}, {2, 3}, {0, 1}},
                                          {{3, 4}, {3, 2, 4}, {0, 2}}};
  for (const Broadcast& c : broadcasts) {
    SCOPED_TRACE(c.from.to_string() + " to " + c.to.to_string());
    expect_gradient({.shapes = {c.from}, .function = [&](Builder& b, auto x) {
                       return b.broadcast_in_dim(b.unary(OpKind::exponential, x[0]), c.to, c.dims);
                     }});
  }
}

TEST(Grad, OfDotGeneral) {
  struct Dot {
    Shape lhs, rhs;
    Builder::DotDims dims;
  };
  const std::vector<Dot> dots{
      {{3}, {3}, {{}, {}, {0}, {0}}},
      {{2, 3}, {3, 4}, {{}, {}, {1}, {0}}},
      {{2, 3}, {4, 3}, {{}, {}, {1}, {1}}},
      {{3, 2}, {3, 4}, {{}, {}, {0}, {0}}},
      {{3, 2}, {4, 3}, {{}, {}, {0}, {1}}},
      {{2, 3}, {4, 5}, {{}, {}, {}, {}}},
      {{2, 3, 4}, {2, 4, 5}, {{0}, {0}, {2}, {1}}},
      {{3, 2, 4}, {4, 5, 2}, {{1}, {2}, {2}, {0}}},
      {{2, 3, 4}, {4, 3, 5}, {{}, {}, {1, 2}, {1, 0}}},
      {{2, 3, 4}, {4, 3, 5}, {{}, {}, {2, 1}, {0, 1}}},
      {{2, 3, 4, 5}, {5, 3, 2, 6}, {{0, 1}, {2, 1}, {3}, {0}}},
      {{2, 3, 4, 5}, {2, 3, 6, 5}, {{1, 0}, {1, 0}, {3}, {3}}},
  };
  for (const Dot& dot : dots) {
    SCOPED_TRACE(dot.lhs.to_string() + " . " + dot.rhs.to_string());
    expect_gradient({.shapes = {dot.lhs, dot.rhs}, .function = [&](Builder& b, auto x) {
                       return b.dot_general(x[0], x[1], dot.dims);
                     }});
  }
}

TEST(Grad, OfDotGeneralNeedsNoTransposeForMatmulAndLinear) {
  const std::vector<std::pair<Shape, Builder::DotDims>> weights{{{3, 4}, {{}, {}, {1}, {0}}},
                                                                {{4, 3}, {{}, {}, {1}, {1}}}};
  for (const auto& [shape, dims] : weights) {
    Program program;
    Builder builder(program);
    const ValueId x = program.add_input(f64({2, 3}), InputKind::data, "x", Sharding::closed());
    const ValueId w = program.add_input(f64(shape), InputKind::param, "w", Sharding::closed());
    const std::vector<std::int64_t> all{0, 1};
    const ValueId y = builder.dot_general(x, w, dims);
    grad(builder, builder.reduce(ReduceKind::add, y, all), std::vector{x, w});
    for (OpId op = 0; op < program.num_ops(); ++op) {
      EXPECT_NE(program.kind(op), OpKind::transpose) << shape.to_string();
    }
  }
}

TEST(Grad, OfReduce) {
  const std::vector<std::vector<std::int64_t>> dim_lists{{}, {0}, {1}, {2}, {0, 2}, {0, 1, 2}};
  for (const ReduceKind kind : {ReduceKind::add, ReduceKind::max, ReduceKind::min}) {
    for (const auto& dims : dim_lists) {
      expect_gradient({.shapes = {{2, 3, 4}}, .function = [&](Builder& b, auto x) {
                         return b.reduce(kind, b.binary(OpKind::multiply, x[0], x[0]), dims);
                       }});
    }
  }
}

struct ConvolutionCase {
  Shape lhs, rhs;
  Convolution attrs;

  std::string to_string() const {
    return fmt::format("{} * {}, [{}]", lhs.to_string(), rhs.to_string(),
                       fmt::join(to_attrs(attrs), ","));
  }
};

/// Returns convolutions with each feature of windows alone and together, dims in any order, and
/// groups.
std::vector<ConvolutionCase> convolutions() {
  const Convolution row{
      .lhs = {0, 1, 2}, .rhs = {1, 0, 2}, .result = {0, 1, 2}, .window = {WindowDim{}}};
  std::vector<ConvolutionCase> cases;
  const std::vector<WindowDim> windows{{},
                                       {.stride = 2},
                                       {.stride = 3, .low = 1},
                                       {.low = 2, .high = 1},
                                       {.low = -1, .high = -2},
                                       {.base_dilation = 2},
                                       {.dilation = 2},
                                       {.stride = 2, .low = 1, .high = 3, .dilation = 2},
                                       {.stride = 3, .low = 2, .base_dilation = 2},
                                       {.stride = 2, .low = -1, .high = 2, .base_dilation = 3},
                                       {.low = 5, .high = 4}};
  for (const WindowDim& window : windows) {
    for (const bool reversed : {false, true}) {
      Convolution c = row;
      c.window = {window};
      c.reversed = reversed;
      cases.push_back({{2, 3, 7}, {2, 3, 3}, c});
    }
  }
  cases.push_back({{5, 2, 6, 3},
                   {2, 4, 3, 2},
                   {.lhs = {1, 3, 2, 0},
                    .rhs = {2, 1, 3, 0},
                    .result = {2, 0, 3, 1},
                    .window = {{.stride = 2, .low = 1}, {.low = 1, .high = 1}}}});
  cases.push_back({{2, 4, 3, 6},
                   {4, 2, 3, 3},
                   {.lhs = {0, 2, 3},
                    .rhs = {2, 1, 3},
                    .result = {0, 2, 3},
                    .window = {{.stride = 2, .low = 1, .high = 1}},
                    .group = {1, 0, 1}}});
  cases.push_back({{4, 6, 2, 3},
                   {3, 3, 2, 4},
                   {.lhs = {2, 3, 1},
                    .rhs = {1, 2, 0},
                    .result = {1, 2, 3},
                    .window = {{.low = 1, .dilation = 2}},
                    .reversed = true,
                    .group = {0, 3, 0}}});
  cases.push_back({{2, 2, 4, 3, 4},
                   {3, 2, 2, 2, 1},
                   {.lhs = {0, 1, 2, 3, 4},
                    .rhs = {1, 0, 2, 3, 4},
                    .result = {0, 1, 2, 3, 4},
                    .window = {{.stride = 2}, {.low = 1}, {.stride = 3}}}});
  return cases;
}

TEST(Grad, OfConvolution) {
  for (const ConvolutionCase& c : convolutions()) {
    SCOPED_TRACE(c.to_string());
    expect_gradient({.shapes = {c.lhs, c.rhs}, .function = [&](Builder& b, auto x) {
                       return b.convolution(x[0], x[1], c.attrs);
                     }});
  }
}

/// The gradients of convolutions are convolutions, so they have gradients too.
TEST(Grad, OfGradientsOfConvolution) {
  for (const ConvolutionCase& c : convolutions()) {
    for (const std::size_t wrt : {0U, 1U}) {
      SCOPED_TRACE(fmt::format("{}, wrt {}", c.to_string(), wrt));
      expect_gradient({.shapes = {c.lhs, c.rhs}, .function = [&](Builder& b, auto x) {
                         const ValueId y = b.convolution(x[0], x[1], c.attrs);
                         std::vector<std::int64_t> all;
                         for (int dim = 0; dim < b.type(y).shape.size(); ++dim) all.push_back(dim);
                         const ValueId loss =
                             b.reduce(ReduceKind::add, b.binary(OpKind::multiply, y, y), all);
                         return grad(b, loss, std::vector{x[wrt]})[0];
                       }});
    }
  }
}

TEST(Grad, OfConvolutionWithoutWindowsOrFeaturesIsZero) {
  const Convolution row{
      .lhs = {0, 1, 2}, .rhs = {1, 0, 2}, .result = {0, 1, 2}, .window = {WindowDim{}}};
  for (const auto& [lhs, rhs] : std::vector<std::pair<Shape, Shape>>{
           {{1, 1, 2}, {1, 1, 3}}, {{0, 1, 4}, {1, 1, 3}}, {{1, 0, 4}, {1, 0, 3}}}) {
    expect_gradient({.shapes = {lhs, rhs}, .function = [&](Builder& b, auto x) {
                       return b.convolution(x[0], x[1], row);
                     }});
  }
}

const std::vector<WindowDim> kWindows{
    {},
    {.size = 2, .stride = 2},
    {.size = 3, .low = 1, .high = 1},
    {.size = 3, .stride = 2, .low = 2, .high = 2},
    {.size = 2, .stride = 3, .low = -1},
    {.size = 2, .stride = 3, .low = 1, .base_dilation = 2, .dilation = 3},
};

TEST(Grad, OfReduceWindow) {
  for (const ReduceKind kind : {ReduceKind::add, ReduceKind::max, ReduceKind::min}) {
    for (const WindowDim& window : kWindows) {
      // With gaps between the elements, some windows contain no element. The maximum of no elements
      // is infinite, so it has no difference quotient.
      if (kind != ReduceKind::add && window.base_dilation > 1) continue;
      SCOPED_TRACE(fmt::format("[{}]", fmt::join(to_attrs(WindowReduction{kind, {window}}), ",")));
      expect_gradient({.shapes = {{2, 7, 4}}, .function = [&](Builder& b, auto x) {
                         const ValueId y = b.unary(OpKind::tanh, x[0]);
                         return b.reduce_window(y, {kind, {{}, window, {.size = 2, .stride = 2}}});
                       }});
    }
  }
}

TEST(Grad, OfSelectAndScatter) {
  for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
    for (const WindowDim& window : kWindows) {
      const WindowReduction reduction{kind, {{}, window, {.size = 2, .stride = 2}}};
      SCOPED_TRACE(fmt::format("[{}]", fmt::join(to_attrs(reduction), ",")));
      expect_gradient({.shapes = {{2, 7, 4}, {2, window_count(window, 7), 2}},
                       .function = [&](Builder& b, auto x) {
                         return b.select_and_scatter(x[0], x[1], reduction);
                       }});
    }
  }
}

TEST(Grad, OfTheGradientOfAMaximumOverWindows) {
  const WindowReduction threes{ReduceKind::max, {{}, {.size = 3, .low = 1, .high = 1}}};
  const std::vector<std::int64_t> all{0, 1};
  expect_gradient({.shapes = {{2, 5}}, .function = [&](Builder& b, auto x) {
                     const ValueId top =
                         b.unary(OpKind::exponential, b.reduce_window(x[0], threes));
                     return grad(b, b.reduce(ReduceKind::add, top, all), x)[0];
                   }});
}

TEST(Grad, OfConvertComesBackInTheOperandsDtype) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input({DType::f32, {3}}, InputKind::data, "x", Sharding::closed());
  const ValueId wide = builder.convert(x, DType::f64);
  const std::vector<std::int64_t> all{0};
  const ValueId loss =
      builder.reduce(ReduceKind::add, builder.binary(OpKind::multiply, wide, wide), all);
  const ValueId g = grad(builder, loss, std::vector{x})[0];
  EXPECT_EQ(program.type(g), program.type(x));
  program.add_output(g, "grad", Sharding::closed());
  EXPECT_EQ(interpret(program, std::vector<Elements>{{1, -2, 3}})[0], (Elements{2, -4, 6}));
}

/// Returns the gradients at one point, for functions that have no difference quotient there.
std::vector<Elements> gradients(const std::vector<Elements>& at, const Function& function) {
  Program program;
  Builder builder(program);
  std::vector<ValueId> inputs;
  for (const Elements& elements : at) {
    const Shape shape{static_cast<std::int64_t>(elements.size())};
    inputs.push_back(program.add_input(f64(shape), InputKind::data, "x", Sharding::closed()));
  }
  const ValueId result = function(builder, inputs);
  const std::vector<std::int64_t> all{0};
  const ValueId loss = builder.type(result).shape.size() == 0
                           ? result
                           : builder.reduce(ReduceKind::add, result, all);
  for (const ValueId g : grad(builder, loss, inputs)) {
    program.add_output(g, "grad", Sharding::closed());
  }
  return interpret(program, at);
}

TEST(Grad, OfTiesIsShared) {
  const std::vector<std::int64_t> all{0};
  EXPECT_EQ(gradients({{3, 1}, {3, 2}}, binary(OpKind::maximum)),
            (std::vector<Elements>{{0.5, 0}, {0.5, 1}}));
  EXPECT_EQ(gradients({{3, 1}, {3, 2}}, binary(OpKind::minimum)),
            (std::vector<Elements>{{0.5, 1}, {0.5, 0}}));
  EXPECT_EQ(gradients({{4, 1, 4, 4, 2}},
                      [&](Builder& b, auto x) { return b.reduce(ReduceKind::max, x[0], all); }),
            (std::vector<Elements>{{1.0 / 3, 0, 1.0 / 3, 1.0 / 3, 0}}));
  EXPECT_EQ(gradients({{4, 1, 1, 2}},
                      [&](Builder& b, auto x) { return b.reduce(ReduceKind::min, x[0], all); }),
            (std::vector<Elements>{{0, 0.5, 0.5, 0}}));
}

TEST(Grad, OfTiesInAWindowGoesToTheFirst) {
  const WindowReduction pairs{ReduceKind::max, {{.size = 2}}};
  EXPECT_EQ(gradients({{4, 4, 1, 4, 4}},
                      [&](Builder& b, auto x) { return b.reduce_window(x[0], pairs); }),
            (std::vector<Elements>{{1, 1, 0, 2, 0}}));
}

/// A scatter is linear in its input y, so its gradient is its transpose S': <S y, g> = <y, S' g>.
TEST(Grad, OfSelectAndScatterSelectsAlike) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Elements y{1, 2, 3, 4};
  const Elements g{10, 20, 30, 40, 50};
  for (const Elements& x : {Elements{4, 4, 1, 4, 4}, Elements{kNan, 5, kNan, kNan, 2},
                            Elements{-kInfinity, -kInfinity, 0, 1, 0}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(x, " ")));
    const auto scattered = gradients({y, g}, [&](Builder& b, auto in) {
      const ValueId at = b.constant(std::as_bytes(std::span(x)), f64({5}));
      const WindowReduction pairs{ReduceKind::max, {{.size = 2}}};
      return b.binary(OpKind::multiply, b.select_and_scatter(at, in[0], pairs), in[1]);
    });
    EXPECT_EQ(std::inner_product(y.begin(), y.end(), scattered[0].begin(), 0.0),
              std::inner_product(g.begin(), g.end(), scattered[1].begin(), 0.0));
  }
}

TEST(Grad, OfPowerIsFiniteAtZero) {
  EXPECT_EQ(gradients({{0, 0, 2}, {0, 2, 0}}, binary(OpKind::power)),
            (std::vector<Elements>{{0, 0, 0}, {0, 0, std::log(2.0)}}));
}

TEST(Grad, ConstrainsTheCotangentAlike) {
  Program program;
  Builder builder(program);
  Sharding sharding;
  sharding.dims[0] = {1};
  const ValueId x = program.add_input(f64({4}), InputKind::data, "x", Sharding::closed());
  const ValueId y = builder.sharding_constraint(x, sharding);
  const std::vector<std::int64_t> all{0};
  const ValueId loss = builder.reduce(ReduceKind::add, builder.binary(OpKind::multiply, y, y), all);
  const ValueId g = grad(builder, loss, std::vector{x})[0];
  const OpId op = program.defining_op(g);
  ASSERT_EQ(program.kind(op), OpKind::sharding_constraint);
  EXPECT_EQ(program.constraints[static_cast<std::size_t>(program.op_attrs(op)[0])], sharding);
}

TEST(Grad, OfAValueThatTheLossDoesNotReachIsZero) {
  const auto result = gradients({{1, 2}, {3, 4}}, [](Builder&, auto x) { return x[0]; });
  EXPECT_EQ(result, (std::vector<Elements>{{1, 1}, {0, 0}}));
}

TEST(Grad, OfTheLossItselfIsOne) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({}), InputKind::data, "x", Sharding::closed());
  program.add_output(grad(builder, x, std::vector{x})[0], "grad", Sharding::closed());
  EXPECT_EQ(interpret(program, std::vector<Elements>{{5}})[0], (Elements{1}));
}

TEST(Grad, OfAnIntermediateValueAndOfWhatItComesFrom) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({}), InputKind::data, "x", Sharding::closed());
  const ValueId y = builder.binary(OpKind::multiply, x, x);
  const ValueId loss = builder.binary(OpKind::multiply, y, y);
  for (const ValueId g : grad(builder, loss, std::vector{y, x})) {
    program.add_output(g, "grad", Sharding::closed());
  }
  EXPECT_EQ(interpret(program, std::vector<Elements>{{3}}), (std::vector<Elements>{{18}, {108}}));
}

TEST(Grad, AppendsNothingOffThePathToWrt) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({4, 4}), InputKind::data, "x", Sharding::closed());
  const ValueId w = program.add_input(f64({4, 4}), InputKind::param, "w", Sharding::closed());
  const ValueId y = builder.dot_general(builder.unary(OpKind::tanh, x), w, {{}, {}, {1}, {0}});
  const std::vector<std::int64_t> all{0, 1};
  const ValueId loss = builder.reduce(ReduceKind::add, y, all);
  const std::uint32_t before = program.num_ops();
  grad(builder, loss, std::vector{w});
  // The gradient adds three ops: the seed, its broadcast, and one dot_general.
  EXPECT_EQ(program.num_ops() - before, 3U);
}

TEST(Grad, NewOpsCarryTheLocationOfTheirOp) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({}), InputKind::data, "x", Sharding::closed());
  builder.set_loc("net.cpp:1");
  const ValueId y = builder.unary(OpKind::tanh, x);
  builder.set_loc("net.cpp:2");
  const ValueId loss = builder.unary(OpKind::exponential, y);
  builder.set_loc("train.cpp:3");
  const ValueId g = grad(builder, loss, std::vector{x})[0];
  EXPECT_EQ(program.loc(program.defining_op(g)), "net.cpp:1");
  EXPECT_EQ(program.loc(2), "net.cpp:2");
  EXPECT_EQ(program.locs[builder.loc()], "train.cpp:3");
}

std::string refusal(Program& program, ValueId loss, ValueId wrt) {
  Builder builder(program);
  return weft::testing::expect_error(Errc::invalid_argument, {},
                                     [&] { grad(builder, loss, std::vector{wrt}); });
}

TEST(Grad, RefusesALossThatIsNotAFloatingScalarAndNamesItsTypeAndPlace) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({2}), InputKind::data, "x", Sharding::closed());
  builder.set_loc("train.cpp:9");
  const ValueId y = builder.unary(OpKind::tanh, x);
  EXPECT_EQ(
      refusal(program, y, x),
      "grad: the loss must be a floating scalar, but is f64[2] at train.cpp:9; reduce it with "
      "sum or mean");
}

TEST(Grad, OfRowComposites) {
  for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{2, 1, 3}}) {
    SCOPED_TRACE(shape.to_string());
    expect_gradient(
        {.shapes = {shape}, .function = [](Builder& b, auto x) { return b.softmax(x[0]); }});
    expect_gradient(
        {.shapes = {shape}, .function = [](Builder& b, auto x) { return b.log_softmax(x[0]); }});
    for (const bool center : {false, true}) {
      expect_gradient({.shapes = {shape}, .function = [=](Builder& b, auto x) {
                         return b.normalize(x[0], {.center = center, .eps = 0.1});
                       }});
    }
  }
}

ValueId labels(Builder& b, std::vector<std::int32_t> of_rows) {
  return b.constant(std::as_bytes(std::span(of_rows)),
                    {DType::i32, {static_cast<std::int64_t>(of_rows.size())}});
}

TEST(Grad, OfCrossEntropy) {
  const Shape logits{4, 3};
  expect_gradient({.shapes = {logits}, .function = [](Builder& b, auto x) {
                     return b.cross_entropy(x[0], labels(b, {2, 0, -100, 3}));
                   }});
  expect_gradient({.shapes = {logits, {4}}, .function = [](Builder& b, auto x) {
                     return b.cross_entropy_grad(x[0], labels(b, {2, 0, -100, 3}), x[1]);
                   }});
}

TEST(Grad, OfTheGradientsOfRowComposites) {
  const Shape shape{3, 4};
  for (const OpKind kind : {OpKind::softmax_grad, OpKind::log_softmax_grad}) {
    expect_gradient({.shapes = {shape, shape}, .function = [=](Builder& b, auto x) {
                       return b.softmax_grad(kind, x[0], x[1]);
                     }});
  }
  for (const bool center : {false, true}) {
    const Normalization form{.center = center, .eps = 0.1};
    expect_gradient({.shapes = {shape, shape}, .function = [=](Builder& b, auto x) {
                       return b.normalize_grad(x[0], x[1], form);
                     }});
    // One value is both operands, and the cotangent depends on that value too.
    expect_gradient({.shapes = {shape}, .function = [=](Builder& b, auto x) {
                       const ValueId back = b.normalize_grad(x[0], x[0], form);
                       return b.binary(OpKind::multiply, back, b.softmax(x[0]));
                     }});
  }
}

TEST(Grad, OfAttention) {
  for (const bool causal : {false, true}) {
    const AttentionForm form{.causal = causal, .scale = 0.7};
    const auto attend = [=](Builder& b, std::span<const ValueId> x) {
      return b.attention(x[0], x[1], x[2], form);
    };
    expect_gradient({.shapes = {{2, 1, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 4}}, .function = attend});
    // Attention of these shapes has no kernel for its gradient.
    expect_gradient({.shapes = {{1, 2, 3, 4}, {1, 2, 2, 4}, {1, 2, 2, 3}}, .function = attend});
    expect_gradient({.shapes = {{1, 1, 3, 2}}, .function = [=](Builder& b, auto x) {
                       return b.attention(x[0], x[0], x[0], form);
                     }});
    // Each of these biases has a gradient, even if it is broadcast.
    for (const Shape& bias : {Shape{2, 1, 3, 5}, Shape{1, 1, 1, 5}, Shape{2, 1, 3, 1}}) {
      expect_gradient({.shapes = {{2, 1, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 4}, bias},
                       .function = [=](Builder& b, auto x) {
                         return b.attention(x[0], x[1], x[2], form, x[3]);
                       }});
    }
    // The mask hides the first two keys. With `causal` too, two queries see no keys.
    expect_gradient(
        {.shapes = {{2, 1, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 4}}, .function = [=](Builder& b, auto x) {
           const TensorType places{DType::i32, {1, 1, 1, 5}};
           const ValueId mask =
               b.compare(CompareDirection::gt, b.iota(places, 3), b.constant(1, places));
           return b.attention(x[0], x[1], x[2], form, mask);
         }});
  }
}

TEST(Grad, RefusesAnIntegerWrt) {
  Program program;
  const ValueId x = program.add_input(f64({}), InputKind::data, "x", Sharding::closed());
  const ValueId i = program.add_input({DType::i32, {3}}, InputKind::data, "i", Sharding::closed());
  EXPECT_EQ(refusal(program, x, i),
            "grad: wrt[0] is i32[3], an input; only floating values have a gradient");
}

TEST(Grad, RefusesOpsOfChipsPrograms) {
  Program program;
  Builder builder(program);
  const ValueId x = program.add_input(f64({}), InputKind::data, "x", Sharding::closed());
  const ValueId y = builder.collective_permute(x, {}, {});
  EXPECT_EQ(
      refusal(program, y, x),
      "grad: collective_permute has no gradient; differentiate the global program, before it is "
      "partitioned");
}

/// Returns the mean cross entropy of the logits relu(x W1^T + b1) W2^T + b2. The maximum of each
/// row is also differentiated.
ValueId mlp_loss(Builder& b, std::span<const ValueId> in) {
  const auto dense = [&](ValueId x, ValueId w, ValueId bias) {
    const ValueId y = b.dot_general(x, w, {{}, {}, {1}, {1}});
    const std::vector<std::int64_t> last{1};
    return b.binary(OpKind::add, y, b.broadcast_in_dim(bias, b.type(y).shape, last));
  };
  const std::vector<std::int64_t> rows{0};
  const std::vector<std::int64_t> classes{1};
  const ValueId hidden = dense(in[0], in[1], in[2]);
  const ValueId zero = b.constant(0, b.type(hidden));
  const ValueId active = b.select(b.compare(CompareDirection::gt, hidden, zero), hidden, zero);
  const ValueId logits = dense(active, in[3], in[4]);
  const Shape shape = b.type(logits).shape;
  const ValueId top = b.broadcast_in_dim(b.reduce(ReduceKind::max, logits, classes), shape, rows);
  const ValueId shifted = b.binary(OpKind::subtract, logits, top);
  const ValueId total = b.reduce(ReduceKind::add, b.unary(OpKind::exponential, shifted), classes);
  const ValueId log_total = b.broadcast_in_dim(b.unary(OpKind::log, total), shape, rows);
  const ValueId log_softmax = b.binary(OpKind::subtract, shifted, log_total);
  const std::vector<std::int32_t> label_values{2, 0, 1, 2};
  const ValueId labels = b.broadcast_in_dim(
      b.constant(std::as_bytes(std::span(label_values)), {DType::i32, {4}}), shape, rows);
  const ValueId is_label = b.compare(CompareDirection::eq, b.iota({DType::i32, shape}, 1), labels);
  return b.reduce(ReduceKind::add, b.select(is_label, log_softmax, b.constant(0, f64(shape))),
                  std::vector<std::int64_t>{0, 1});
}

const std::vector<Shape> kMlpShapes{{4, 5}, {6, 5}, {6}, {3, 6}, {3}};

TEST(Grad, OfAnMlpWithSoftmaxCrossEntropy) {
  expect_gradient({.shapes = kMlpShapes, .function = mlp_loss});
}

TEST(Grad, IsTheSameAfterCanonicalize) {
  Program program;
  Builder builder(program);
  std::mt19937 random(kSeed);
  std::vector<ValueId> inputs;
  std::vector<Elements> at;
  for (const Shape& shape : kMlpShapes) {
    inputs.push_back(program.add_input(f64(shape), InputKind::data, "x", Sharding::closed()));
    at.push_back(random_elements(random, shape, -1, 1));
  }
  const ValueId loss = mlp_loss(builder, inputs);
  for (const ValueId g : grad(builder, loss, inputs)) {
    program.add_output(g, "grad", Sharding::closed());
  }
  EXPECT_EQ(interpret(canonicalize(program, true), at), interpret(program, at)) << "seed " << kSeed;
}

}  // namespace
}  // namespace weft::grad_test
