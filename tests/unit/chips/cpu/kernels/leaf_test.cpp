#include <array>

#include <gtest/gtest.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::leaf_test {
namespace {

constexpr std::array kNumeric{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                              DType::u32, DType::i64,  DType::i8,  DType::u8};

TEST(Leaf, ConstantsAgreeWithTheInterpreter) {
  for (const DType dtype : kNumeric) {
    SCOPED_TRACE(to_string(dtype));
    KernelCase splat;
    splat.output(splat.build.constant(-3.5, {dtype, {5, 3}}));
    expect_exact(splat);

    KernelCase full;
    std::vector<std::byte> bytes(static_cast<std::size_t>(6 * byte_size(dtype)));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i % 64);
    full.output(full.build.constant(bytes, {dtype, {2, 3}}));
    expect_exact(full);
  }
}

TEST(Leaf, EmptyConstantHasNoElements) {
  KernelCase test;
  test.output(test.build.constant(1, {DType::f32, {0, 3}}));
  expect_exact(test);
}

TEST(Leaf, IotaAgreesWithTheInterpreter) {
  for (const DType dtype : kNumeric) {
    for (int dim = 0; dim < 3; ++dim) {
      KernelCase test;
      test.output(test.build.iota({dtype, {2, 3, 5}}, dim));
      expect_exact(test);
    }
  }
}

TEST(Leaf, IotaOfAShardedDimBeginsAtTheChipsPart) {
  const Mesh mesh({2, 2}, {"data", "model"});
  const AtomList atoms = mesh.axis_atoms(1);
  Program program;
  const std::array attrs{std::int64_t{1}, static_cast<std::int64_t>(atoms.bits())};
  const ValueId iota = program.add_op(OpKind::iota, {}, attrs, {DType::i32, {2, 3}});
  program.add_output(iota, "y", {});
  for (int position = 0; position < mesh.size(); ++position) {
    const double first = position % 2 == 0 ? 0 : 3;
    const Elements expected{first, first + 1, first + 2, first, first + 1, first + 2};
    EXPECT_EQ(run_kernels(program, {}, mesh, position).at(0), expected);
  }
}

}  // namespace
}  // namespace weft::kernels::leaf_test
