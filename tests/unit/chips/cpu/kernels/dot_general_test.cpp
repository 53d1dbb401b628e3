#include <algorithm>
#include <array>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

// These functions are in GNU OpenMP, with which oneDNN is linked. clang has no omp.h for it.
extern "C" int omp_get_max_threads() noexcept;
extern "C" void omp_set_num_threads(int) noexcept;

namespace weft::kernels::dot_general_test {
namespace {

constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};

/// The shape of an operand whose dims are in random order, and the positions of its batch and
/// contracting dims.
struct Side {
  Shape shape;
  DimList batch;
  DimList contracting;
};

Side any_side(std::mt19937& random, const Shape& batch, const Shape& contracting,
              const Shape& free) {
  std::vector<std::int64_t> sizes(batch.begin(), batch.end());
  sizes.insert(sizes.end(), contracting.begin(), contracting.end());
  sizes.insert(sizes.end(), free.begin(), free.end());
  std::vector<std::size_t> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  std::vector<std::int64_t> shape(sizes.size());
  Side side;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shape[order[i]] = sizes[i];
    const auto dim = static_cast<std::int64_t>(order[i]);
    if (i < static_cast<std::size_t>(batch.size())) {
      side.batch.push_back(dim);
    } else if (i < static_cast<std::size_t>(batch.size() + contracting.size())) {
      side.contracting.push_back(dim);
    }
  }
  side.shape = Shape(std::span<const std::int64_t>(shape));
  return side;
}

/// Adds a dot_general with random dims in random order. Returns the number of terms of each
/// element.
std::int64_t make_dot(KernelCase& test, std::mt19937& random, DType dtype, double limit, bool whole,
                      std::int64_t size_min = 1) {
  const Shape batch = random_shape(random, random_int(random, 0, 2), size_min, 4);
  const Shape contracting = random_shape(random, random_int(random, 0, 2), size_min, 9);
  const Shape lhs_free = random_shape(random, random_int(random, 0, 2), size_min, 9);
  const Shape rhs_free = random_shape(random, random_int(random, 0, 2), size_min, 9);
  const Side lhs = any_side(random, batch, contracting, lhs_free);
  const Side rhs = any_side(random, batch, contracting, rhs_free);
  const double low = dtype == DType::u32 ? 0 : -limit;
  const ValueId a = test.input({dtype, lhs.shape}, random, low, limit, whole);
  const ValueId b = test.input({dtype, rhs.shape}, random, low, limit, whole);
  test.output(
      test.build.dot_general(a, b, {lhs.batch, rhs.batch, lhs.contracting, rhs.contracting}));
  return contracting.num_elements();
}

TEST(DotGeneral, IsExactOnWholeNumbers) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const DType dtype = kNumeric[seed % kNumeric.size()];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
    KernelCase test;
    make_dot(test, random, dtype, dtype == DType::bf16 ? 1 : 9, true);
    expect_exact(test);
  }
}

TEST(DotGeneral, FloatsStayWithinRounding) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
      std::mt19937 random(seed);
      KernelCase test;
      const std::int64_t terms = make_dot(test, random, dtype, 1, false);
      expect_near(test, 8 * epsilon(dtype), static_cast<double>(terms));
    }
  }
}

TEST(DotGeneral, Bf16IsSummedInF32AndRoundedOnce) {
  std::mt19937 random(7);
  KernelCase test;
  const ValueId a = test.input({DType::bf16, {5, 300}}, random, -1, 1);
  const ValueId b = test.input({DType::bf16, {300, 6}}, random, -1, 1);
  test.output(test.build.dot_general(a, b, {{}, {}, {1}, {0}}));
  // The tolerance is half an ulp of the result, plus the rounding of a sum of 300 terms in f32.
  const Elements exact = interpret(test.program, test.inputs).at(0);
  const Elements actual = run_kernels(test).at(0);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(actual[i], exact[i],
                epsilon(DType::bf16) * std::abs(exact[i]) + 300 * epsilon(DType::f32));
  }
}

TEST(DotGeneral, EmptyDimsGiveZeroOrNothing) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    make_dot(test, random, DType::f32, 9, true, 0);
    expect_exact(test);
  }
}

/// Adds a product [m,k] x [k,n] that is large enough for oneDNN to divide it among threads.
void make_large(KernelCase& test) {
  std::mt19937 random(11);
  const ValueId a = test.input({DType::f32, {192, 320}}, random, -1, 1);
  const ValueId b = test.input({DType::f32, {320, 256}}, random, -1, 1);
  test.output(test.build.dot_general(a, b, {{}, {}, {1}, {0}}));
}

TEST(DotGeneral, TwoRunsAgreeBitwise) {
  KernelCase test;
  make_large(test);
  EXPECT_EQ(run_kernels(test), run_kernels(test));
}

std::ptrdiff_t count_threads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

TEST(DotGeneral, RunsOnTheCallingThreadAlone) {
  omp_set_num_threads(3);
  const std::ptrdiff_t before = count_threads();
  KernelCase test;
  make_large(test);
  run_kernels(test);
  EXPECT_EQ(count_threads(), before);
  EXPECT_EQ(omp_get_max_threads(), 3) << "the caller's setting was changed";
}

}  // namespace
}  // namespace weft::kernels::dot_general_test
