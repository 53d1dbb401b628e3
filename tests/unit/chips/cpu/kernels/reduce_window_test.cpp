#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::reduce_window_test {
namespace {

constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};

ReduceKind any_kind(std::mt19937& random, ReduceKind first) {
  return static_cast<ReduceKind>(random_int(random, static_cast<int>(first), 2));
}

/// Returns random windows. Some contain only padding or gaps between elements.
WindowReduction any_windows(std::mt19937& random, ReduceKind kind, const Shape& shape) {
  WindowReduction reduction{kind};
  for (int dim = 0; dim < shape.size(); ++dim) {
    WindowDim& window = reduction.dims.emplace_back();
    if (random_int(random, 0, 1) == 0) continue;
    window = {.size = random_int(random, 1, 3),
              .stride = random_int(random, 1, 3),
              .low = random_int(random, -1, 3),
              .high = random_int(random, -1, 3),
              .base_dilation = std::max(1, random_int(random, -2, 3)),
              .dilation = random_int(random, 1, 3)};
  }
  return reduction;
}

/// Lets `body` make a case for each of many types and windows, and compares it with the
/// interpreter.
template <typename Body>
void check(ReduceKind first, const Body& body) {
  for (unsigned seed = 0; seed < 900; ++seed) {
    std::mt19937 random(seed);
    const TensorType type{kNumeric[seed % kNumeric.size()],
                          random_shape(random, random_int(random, 0, 4), 0, 6)};
    const WindowReduction reduction = any_windows(random, any_kind(random, first), type.shape);
    SCOPED_TRACE(fmt::format("seed {}: {} of {}", seed, fmt::join(to_attrs(reduction), ","),
                             type.to_string()));
    KernelCase test;
    body(test, random, type, reduction);
    expect_exact(test);
  }
}

TEST(ReduceWindow, AgreesWithTheInterpreter) {
  check(ReduceKind::add, [](KernelCase& test, std::mt19937& random, const TensorType& type,
                            const WindowReduction& reduction) {
    test.output(test.build.reduce_window(test.input(type, random, 0, 3, true), reduction));
  });
}

TEST(ReduceWindow, TakesPredicates) {
  std::mt19937 random(2);
  KernelCase test;
  const ValueId x = test.input({DType::pred, {4, 9}}, random, 0, 1);
  test.output(
      test.build.reduce_window(x, {ReduceKind::max, {{}, {.size = 3, .stride = 2, .low = 3}}}));
  expect_exact(test);
}

TEST(ReduceWindow, PassesNansOn) {
  KernelCase test;
  const ValueId x = test.input({DType::f32, {6}}, std::array<double, 6>{1, NAN, 2, 3, 4, NAN});
  test.output(test.build.reduce_window(x, {ReduceKind::max, {{.size = 2}}}));
  expect_exact(test);
}

TEST(ReduceWindow, SumsBf16InF32) {
  KernelCase test;
  std::vector<double> ones(512, 1);
  const ValueId x = test.input({DType::bf16, {512}}, ones);
  // If the sum were rounded to bf16 in between, 256 + 1 would stay 256.
  test.output(test.build.reduce_window(x, {ReduceKind::add, {{.size = 512}}}));
  expect_exact(test);
}

TEST(SelectAndScatter, AgreesWithTheInterpreter) {
  check(ReduceKind::max, [](KernelCase& test, std::mt19937& random, const TensorType& type,
                            const WindowReduction& reduction) {
    // The elements have only few values, so most windows have ties.
    const ValueId x = test.input(type, random, 0, 2, true);
    const TensorType windows = test.program.type(test.build.reduce_window(x, reduction));
    const ValueId y = test.input(windows, random, 0, 5, true);
    test.output(test.build.select_and_scatter(x, y, reduction));
  });
}

TEST(SelectAndScatter, SelectsTheFirstNan) {
  KernelCase test;
  const ValueId x = test.input({DType::f32, {6}}, std::array<double, 6>{1, NAN, NAN, 9, -9, -9});
  const ValueId y = test.input({DType::f32, {3}}, std::array<double, 3>{10, 20, 30});
  test.output(test.build.select_and_scatter(
      x, y, {ReduceKind::max, {{.size = 3, .stride = 2, .high = 1}}}));
  expect_exact(test);
}

}  // namespace
}  // namespace weft::kernels::reduce_window_test
