#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::reduce_test {
namespace {

constexpr std::array kKinds{ReduceKind::add, ReduceKind::max, ReduceKind::min};
constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};

std::vector<std::int64_t> some_dims(std::mt19937& random, const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (int dim = 0; dim < shape.size(); ++dim) {
    if (random_int(random, 0, 1) == 1) dims.push_back(dim);
  }
  return dims;
}

Shape any_shape(std::mt19937& random) {
  Shape shape = random_shape(random, random_int(random, 0, kDimCountMax), 1, 4);
  if (shape.size() > 0 && random_int(random, 0, 1) == 1) {
    shape[random_int(random, 0, shape.size() - 1)] = random_int(random, 0, 70);
  }
  return shape;
}

TEST(Reduce, IsExactOnWholeNumbers) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const DType dtype = kNumeric[seed % kNumeric.size()];
    const ReduceKind kind = kKinds[seed / kNumeric.size() % kKinds.size()];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
    KernelCase test;
    const Shape shape = any_shape(random);
    // bf16 has all whole numbers only up to 256, so its sums are of zeros and ones.
    const bool narrow = dtype == DType::bf16 && kind == ReduceKind::add;
    const bool is_unsigned = dtype == DType::u32 || dtype == DType::u8;
    const double low = narrow || is_unsigned ? 0 : -50;
    const double high = !narrow ? 50 : shape.num_elements() > 200 ? 0 : 1;
    const ValueId x = test.input({dtype, shape}, random, low, high, true);
    test.output(test.build.reduce(kind, x, some_dims(random, shape)));
    expect_exact(test);
  }
}

// The kernel computes results in pieces of 2048 columns and adds four rows at a time, so the sizes
// include remainders of both.
TEST(Reduce, OverRowsOfManyColumnsIsExactOnWholeNumbers) {
  std::mt19937 random(11);
  for (const std::int64_t rows : {1, 3, 4, 9}) {
    for (const ReduceKind kind : kKinds) {
      KernelCase test;
      const ValueId x = test.input({DType::f32, {2, rows, 2 * 2048 + 5}}, random, -50, 50, true);
      test.output(test.build.reduce(kind, x, std::array<std::int64_t, 1>{1}));
      test.output(test.build.reduce(kind, x, std::array<std::int64_t, 2>{0, 1}));
      expect_exact(test);
    }
  }
}

TEST(Reduce, SumOfFloatsStaysWithinRounding) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    const Shape shape = any_shape(random);
    const ValueId x = test.input({DType::f32, shape}, random, -1, 1);
    test.output(test.build.reduce(ReduceKind::add, x, some_dims(random, shape)));
    // Each addition rounds a partial sum, whose magnitude is at most the number of elements.
    expect_near(test, 1e-6, static_cast<double>(std::max<std::int64_t>(shape.num_elements(), 1)));
  }
}

TEST(Reduce, PredHasAnyAndAll) {
  for (const ReduceKind kind : {ReduceKind::max, ReduceKind::min}) {
    for (const std::int64_t dim : {0, 1}) {
      std::mt19937 random(3);
      KernelCase test;
      const ValueId x = test.input({DType::pred, {3, 40}}, random, 0, 1);
      test.output(test.build.reduce(kind, x, std::array{dim}));
      expect_exact(test);
    }
  }
}

TEST(Reduce, OverNoElementsGivesTheNeutralOne) {
  for (const DType dtype : kNumeric) {
    for (const ReduceKind kind : kKinds) {
      for (const std::int64_t dim : {0, 1}) {
        KernelCase test;
        Shape shape{3, 3};
        shape[static_cast<int>(dim)] = 0;
        const ValueId x = test.input({dtype, shape}, Elements{});
        test.output(test.build.reduce(kind, x, std::array{dim}));
        expect_exact(test);
      }
    }
  }
}

TEST(Reduce, MaxOfANanIsNanWhereverItLies) {
  constexpr std::size_t kSize = 37;
  for (std::size_t place = 0; place < kSize; ++place) {
    for (const std::int64_t dim : {0, 1}) {
      KernelCase test;
      Elements elements(kSize, 1.0);
      elements[place] = std::numeric_limits<double>::quiet_NaN();
      Shape shape{1, 1};
      shape[static_cast<int>(dim)] = kSize;
      const ValueId x = test.input({DType::f32, shape}, elements);
      test.output(test.build.reduce(ReduceKind::max, x, std::array{dim}));
      EXPECT_TRUE(std::isnan(run_kernels(test).at(0).at(0))) << "place " << place;
    }
  }
}

TEST(Reduce, TwoRunsAgreeBitwise) {
  std::mt19937 random(5);
  KernelCase test;
  const ValueId x = test.input({DType::f32, {9, 1000, 3}}, random, -1, 1);
  test.output(test.build.reduce(ReduceKind::add, x, std::array<std::int64_t, 1>{1}));
  test.output(test.build.reduce(ReduceKind::add, x, std::array<std::int64_t, 3>{0, 1, 2}));
  EXPECT_EQ(run_kernels(test), run_kernels(test));
}

}  // namespace
}  // namespace weft::kernels::reduce_test
