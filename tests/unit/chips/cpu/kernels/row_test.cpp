#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::row_test {
namespace {

using MakeOp = std::function<ValueId(Builder&, ValueId x, ValueId g)>;

const std::array<MakeOp, 8> kOps{
    [](Builder& b, ValueId x, ValueId) { return b.softmax(x); },
    [](Builder& b, ValueId x, ValueId) { return b.log_softmax(x); },
    [](Builder& b, ValueId x, ValueId g) { return b.softmax_grad(OpKind::softmax_grad, x, g); },
    [](Builder& b, ValueId x, ValueId g) { return b.softmax_grad(OpKind::log_softmax_grad, x, g); },
    [](Builder& b, ValueId x, ValueId) { return b.normalize(x, {.center = true}); },
    [](Builder& b, ValueId x, ValueId) { return b.normalize(x, {.center = false}); },
    [](Builder& b, ValueId x, ValueId g) { return b.normalize_grad(x, g, {.center = true}); },
    [](Builder& b, ValueId x, ValueId g) { return b.normalize_grad(x, g, {.center = false}); },
};

Shape any_rows(std::mt19937& random) {
  Shape shape = random_shape(random, random_int(random, 1, 4), 1, 4);
  shape[shape.size() - 1] = random_int(random, 0, 1) == 1 ? random_int(random, 0, 100) : 1031;
  return shape;
}

TEST(Row, AgreesWithTheReference) {
  for (unsigned seed = 0; seed < 240; ++seed) {
    std::mt19937 random(seed);
    const DType dtype = std::array{DType::f32, DType::bf16, DType::f64, DType::f16}[seed / 8 % 4];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
    KernelCase test;
    const Shape shape = any_rows(random);
    const ValueId x = test.input({dtype, shape}, random, -3, 3);
    const ValueId g = test.input({dtype, shape}, random, -1, 1);
    test.output(kOps[seed % kOps.size()](test.build, x, g));
    // The terms of sums along a row may cancel, so errors are compared with `sums`, the terms'
    // magnitude, where the result is smaller. Results of 16 bits are rounded once more.
    const double rounding = is_half(dtype) ? epsilon(dtype) : 0;
    const double sums = seed % kOps.size() == 0 ? 1e-6 : seed % kOps.size() < 4 ? 100 : 1;
    // Below 2^-14 the distance between f16 numbers, and so the rounding error, is constant.
    const double scale = dtype == DType::f16 ? std::max(sums, 0x1p-14) : sums;
    expect_near(test, 1e-5 + rounding * 1.01, scale);
  }
}

TEST(Row, CrossEntropyAgreesWithTheReference) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    std::mt19937 random(seed);
    const DType dtype = std::array{DType::f32, DType::bf16, DType::f64, DType::f16}[seed / 2 % 4];
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
    KernelCase test;
    const Shape shape = any_rows(random);
    const Shape rows(std::span(shape.begin(), shape.end() - 1));
    const ValueId x = test.input({dtype, shape}, random, -3, 3);
    const ValueId labels = test.input({DType::i32, rows}, random, -1, 20, true);
    const ValueId g = test.input({dtype, rows}, random, -1, 1);
    const bool is_grad = seed % 2 == 1;
    test.output(is_grad ? test.build.cross_entropy_grad(x, labels, g)
                        : test.build.cross_entropy(x, labels));
    const double rounding = is_half(dtype) ? epsilon(dtype) : 0;
    expect_near(test, 1e-5 + rounding * 1.01, is_grad ? 1e-3 : 1);
  }
}

TEST(Row, SoftmaxOfExtremeRows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Elements elements{1e30, -1e30, 0, -kInfinity, 5, 5, 88, -100, 3, kInfinity, 0, 0};
  for (const int op : {0, 1}) {
    KernelCase test;
    const ValueId x = test.input({DType::f32, {4, 3}}, elements);
    test.output(kOps[static_cast<std::size_t>(op)](test.build, x, x));
    expect_near(test, 1e-5, 1e-6);
  }
}

TEST(Row, ARowsResultDoesNotDependOnTheOthers) {
  std::mt19937 random(5);
  for (const MakeOp& op : kOps) {
    KernelCase all;
    const ValueId x = all.input({DType::f32, {3, 77}}, random, -3, 3);
    all.output(op(all.build, x, x));
    const Elements rows = run_kernels(all).at(0);
    EXPECT_EQ(run_kernels(all).at(0), rows);
    KernelCase last;
    const ValueId row =
        last.input({DType::f32, {1, 77}}, std::span<const double>(all.inputs[0]).last(77));
    last.output(op(last.build, row, row));
    EXPECT_EQ(run_kernels(last).at(0), Elements(rows.end() - 77, rows.end()));
  }
}

}  // namespace
}  // namespace weft::kernels::row_test
