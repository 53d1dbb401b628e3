#include "chips/cpu/kernels/convolution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "spmd/grad/grad.hpp"
#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::convolution_test {
namespace {

constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};

/// Returns a shape whose dim roles[i] has the size sizes[i].
Shape placed(std::span<const std::int64_t> roles, std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> shape(roles.size());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    shape[static_cast<std::size_t>(roles[i])] = sizes[i];
  }
  return Shape(shape);
}

std::vector<std::int64_t> any_order(std::mt19937& random, std::size_t count) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  switch (random_int(random, 0, 3)) {
    case 0:
    case 1: std::ranges::shuffle(order, random); break;
    case 2:  // features last
      order[1] = static_cast<std::int64_t>(count) - 1;
      for (std::size_t i = 2; i < count; ++i) --order[i];
      break;
    default: break;
  }
  return order;
}

/// Adds a random convolution with 1 to 3 spatial dims; oneDNN doesn't support many of these.
void make_convolution(KernelCase& test, std::mt19937& random, DType dtype) {
  const auto spatial = static_cast<std::size_t>(random_int(random, 1, 3));
  const bool grouped = random_int(random, 0, 2) == 0;
  const std::size_t num_dims = 2 + spatial + (grouped ? 1 : 0);
  Convolution c{.lhs = any_order(random, num_dims),
                .rhs = any_order(random, num_dims),
                .result = any_order(random, num_dims),
                .reversed = random_int(random, 0, 1) == 0};
  const int features = random_int(random, 1, 10);
  std::vector<std::int64_t> lhs{random_int(random, 1, 3), features};
  std::vector<std::int64_t> rhs{features, random_int(random, 1, 10)};
  const bool plain = random_int(random, 0, 2) == 0;
  for (std::size_t i = 0; i < spatial; ++i) {
    lhs.push_back(random_int(random, 1, 7));
    rhs.push_back(random_int(random, 1, 4));
    WindowDim& window = c.window.emplace_back();
    if (plain) continue;
    window.stride = random_int(random, 1, 3);
    window.low = random_int(random, -1, 4);
    window.high = random_int(random, -1, 4);
    window.base_dilation = std::max(1, random_int(random, -2, 3));
    window.dilation = random_int(random, 1, 3);
  }
  if (grouped) {
    lhs.push_back(random_int(random, 1, 3));
    rhs.push_back(lhs.back());
  }
  const Shape lhs_shape = placed(c.lhs, lhs);
  const Shape rhs_shape = placed(c.rhs, rhs);
  if (grouped) {
    for (auto* side : {&c.lhs, &c.rhs, &c.result}) {
      c.group.push_back(side->back());
      side->pop_back();
    }
  }
  const double low = dtype == DType::u32 ? 0 : -3;
  const double high = dtype == DType::bf16 ? 0 : 3;
  const ValueId x = test.input({dtype, lhs_shape}, random, low, high, true);
  const ValueId w = test.input({dtype, rhs_shape}, random, low / 3, 1, true);
  test.output(test.build.convolution(x, w, c));
}

TEST(Convolution, IsExactOnWholeNumbers) {
  std::map<ConvolutionMethod, int> count;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const DType dtype = kNumeric[std::min<std::size_t>(seed % 12, 11) % kNumeric.size()];
    KernelCase test;
    make_convolution(test, random, seed % 3 == 0 ? DType::f32 : dtype);
    SCOPED_TRACE(fmt::format("seed {}: {} by {}", seed, fmt::join(test.program.op_attrs(0), ","),
                             static_cast<int>(convolution_method(test.program, 0))));
    ++count[convolution_method(test.program, 0)];
    // bf16 can't represent all whole numbers above 256, so its sums are compared within a rounding.
    if (test.program.type(0).dtype == DType::bf16) {
      expect_near(test, epsilon(DType::bf16));
    } else {
      expect_exact(test);
    }
  }
  using enum ConvolutionMethod;
  for (const ConvolutionMethod method : {forward, backward_data, backward_weights, loops}) {
    EXPECT_GT(count[method], 30) << static_cast<int>(method);
  }
}

struct Layer {
  Shape x, w;
  std::vector<WindowDim> window;
};

const std::vector<Layer> kLayers{
    {{4, 1, 28, 28}, {32, 1, 3, 3}, {{.low = 1, .high = 1}, {.low = 1, .high = 1}}},
    {{4, 32, 14, 14}, {64, 32, 3, 3}, {{}, {}}},
    {{2, 3, 17, 16}, {8, 3, 5, 3}, {{.stride = 2, .low = 2, .high = 2}, {.stride = 3}}},
    {{2, 16, 9, 9}, {24, 16, 1, 1}, {{.stride = 2}, {.stride = 2}}},
    {{2, 8, 12, 12}, {8, 8, 3, 3}, {{.low = 2, .high = 2, .dilation = 2}, {.dilation = 3}}},
    {{3, 5, 7, 8}, {6, 5, 7, 8}, {{}, {}}},
    {{2, 4, 6, 6}, {4, 4, 2, 2}, {{.stride = 2}, {.stride = 2, .low = 1}}},
};

/// Adds a layer y = x * w and the gradients of sum(y * y). The outputs are y, dx and dw.
void make_layer(KernelCase& test, const Layer& layer, DType dtype, std::mt19937& random,
                std::int64_t groups = 1) {
  Convolution c{
      .lhs = {0, 1, 2, 3}, .rhs = {1, 0, 2, 3}, .result = {0, 1, 2, 3}, .window = layer.window};
  Shape x_shape = layer.x;
  Shape w_shape = layer.w;
  std::vector<std::int64_t> all{0, 1, 2, 3};
  if (groups > 1) {
    c.lhs = {0, 2, 3, 4};
    c.rhs = {2, 1, 3, 4};
    c.result = {0, 2, 3, 4};
    c.group = {1, 0, 1};
    x_shape = {layer.x[0], groups, layer.x[1], layer.x[2], layer.x[3]};
    w_shape = {groups, layer.w[0], layer.w[1], layer.w[2], layer.w[3]};
    all.push_back(4);
  }
  const ValueId x = test.input({dtype, x_shape}, random, -2, 2, true);
  const ValueId w = test.input({dtype, w_shape}, random, -1, 1, true);
  Builder& b = test.build;
  const ValueId y = b.convolution(x, w, c);
  const ValueId loss = b.reduce(ReduceKind::add, b.binary(OpKind::multiply, y, y), all);
  test.output(y);
  for (const ValueId g : grad(b, loss, std::vector{x, w})) test.output(g);
}

ConvolutionMethod method_of(const KernelCase& test, std::size_t output) {
  const Program& program = test.program;
  return convolution_method(program, program.defining_op(program.outputs[output].value));
}

TEST(Convolution, GradientsOfLayersAreOneDnnsBackwardPrimitives) {
  for (const std::int64_t groups : {1, 3}) {
    for (const Layer& layer : kLayers) {
      SCOPED_TRACE(
          fmt::format("{} * {}, {} groups", layer.x.to_string(), layer.w.to_string(), groups));
      std::mt19937 random(3);
      KernelCase test;
      make_layer(test, layer, DType::f32, random, groups);
      // A convolution with one window over all of x looks like a gradient with respect to weights,
      // unless it has groups.
      const bool whole = layer.w[2] == layer.x[2] && groups == 1;
      EXPECT_EQ(method_of(test, 0),
                whole ? ConvolutionMethod::backward_weights : ConvolutionMethod::forward);
      EXPECT_EQ(method_of(test, 1), ConvolutionMethod::backward_data);
      EXPECT_EQ(method_of(test, 2),
                whole ? ConvolutionMethod::forward : ConvolutionMethod::backward_weights);
      EXPECT_EQ(run_kernels(test), interpret(test.program, test.inputs));
    }
  }
}

TEST(Convolution, LayersAreExactByLoopsToo) {
  for (const Layer& layer : kLayers) {
    std::mt19937 random(3);
    KernelCase test;
    make_layer(test, layer, DType::f64, random);
    EXPECT_EQ(method_of(test, 0), ConvolutionMethod::loops);
    EXPECT_EQ(run_kernels(test), interpret(test.program, test.inputs)) << layer.x.to_string();
  }
}

TEST(Convolution, Bf16IsSummedInF32AndRoundedOnce) {
  std::mt19937 random(7);
  KernelCase test;
  const ValueId x = test.input({DType::bf16, {2, 16, 8, 8}}, random, -1, 1);
  const ValueId w = test.input({DType::bf16, {8, 16, 3, 3}}, random, -1, 1);
  test.output(test.build.convolution(x, w,
                                     {.lhs = {0, 1, 2, 3},
                                      .rhs = {1, 0, 2, 3},
                                      .result = {0, 1, 2, 3},
                                      .window = {WindowDim{}, WindowDim{}}}));
  // The tolerance is half an ulp of the result, plus the rounding of a sum of 144 terms in f32.
  const Elements exact = interpret(test.program, test.inputs).at(0);
  const Elements actual = run_kernels(test).at(0);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(actual[i], exact[i],
                epsilon(DType::bf16) * std::abs(exact[i]) + 144 * epsilon(DType::f32));
  }
}

TEST(Convolution, TwoRunsAgreeBitwise) {
  for (const Layer& layer : kLayers) {
    KernelCase test;
    std::mt19937 random(5);
    make_layer(test, layer, DType::f32, random);
    for (Elements& input : test.inputs) {
      for (double& element : input) element = static_cast<float>(element + 0.1 * std::sin(element));
    }
    EXPECT_EQ(run_kernels(test), run_kernels(test));
  }
}

TEST(Convolution, EmptyDimsGiveZeroOrNothing) {
  for (const auto& [x_shape, w_shape] : std::vector<std::pair<Shape, Shape>>{
           {{2, 0, 5}, {3, 0, 2}}, {{0, 2, 5}, {3, 2, 2}}, {{2, 2, 1}, {3, 2, 2}}}) {
    KernelCase test;
    std::mt19937 random(1);
    const ValueId x = test.input({DType::f32, x_shape}, random, -2, 2, true);
    const ValueId w = test.input({DType::f32, w_shape}, random, -2, 2, true);
    test.output(test.build.convolution(
        x, w, {.lhs = {0, 1, 2}, .rhs = {1, 0, 2}, .result = {0, 1, 2}, .window = {WindowDim{}}}));
    expect_exact(test);
  }
}

}  // namespace
}  // namespace weft::kernels::convolution_test
