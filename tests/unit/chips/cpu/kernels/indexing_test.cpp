#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::indexing_test {
namespace {

constexpr std::array kDTypes{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                             DType::u32, DType::i64,  DType::i8,  DType::u8,  DType::pred};

DType any_dtype(std::mt19937& random, bool with_pred) {
  const int last = static_cast<int>(kDTypes.size()) - (with_pred ? 1 : 2);
  return kDTypes[static_cast<std::size_t>(random_int(random, 0, last))];
}

Shape joined(const Shape& first, const Shape& second) {
  std::vector<std::int64_t> dims(first.begin(), first.end());
  dims.insert(dims.end(), second.begin(), second.end());
  return Shape(std::span<const std::int64_t>(dims));
}

/// Runs random programs that `make` builds, each with one output that must equal the interpreter's.
void expect_exact_cases(const std::function<void(std::mt19937&, KernelCase&)>& make) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    make(random, test);
    expect_exact(test);
  }
}

TEST(Indexing, GatherAgreesWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const Shape row = random_shape(random, random_int(random, 0, 2), 0, 5);
    const Shape index = random_shape(random, random_int(random, 0, 3), 0, 5);
    const ValueId table = test.input({any_dtype(random, true), joined({7}, row)}, random, 0, 100);
    test.output(test.build.gather(table, test.input({DType::i32, index}, random, -2, 9)));
  });
}

TEST(Indexing, CheckIndexAgreesWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const Shape shape = random_shape(random, random_int(random, 0, 3), 0, 5);
    test.output(test.build.check_index(test.input({DType::i32, shape}, random, 0, 6), 7, -100));
  });
}

TEST(Indexing, ScatterAgreesWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const Shape row = random_shape(random, random_int(random, 0, 2), 0, 5);
    const Shape index = random_shape(random, random_int(random, 0, 3), 0, 4);
    const TensorType updates{any_dtype(random, false), joined(index, row)};
    const ValueId at = test.input({DType::i32, index}, random, -2, 7);
    // The updates are small whole numbers, so their sums are exact in bf16 too.
    const ValueId x = test.input(updates, random, 0, 3, true);
    test.output(test.build.scatter(at, x, random_int(random, 0, 6)));
  });
}

TEST(Indexing, ScatterOfBf16RoundsOnce) {
  // Sums must be wider than bf16: if these were added one by one in bf16, 256 + 1 would stay 256.
  KernelCase test;
  const Elements updates{256, 1, 1, 1, 1};
  const ValueId index = test.input({DType::i32, {5}}, Elements{0, 0, 0, 0, 0});
  const ValueId x = test.input({DType::bf16, {5}}, updates);
  test.output(test.build.scatter(index, x, 1));
  EXPECT_EQ(run_kernels(test).at(0), Elements{260});
}

TEST(Indexing, DynamicSlicesAgreeWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const Shape shape = random_shape(random, random_int(random, 0, kDimCountMax), 0, 4);
    const DType dtype = any_dtype(random, true);
    const ValueId x = test.input({dtype, shape}, random, 0, 100);
    std::vector<std::int64_t> sizes;
    std::vector<ValueId> starts;
    for (const std::int64_t size : shape) {
      sizes.push_back(random_int(random, 0, static_cast<int>(size)));
      starts.push_back(test.input({DType::i32, {}}, random, -2, 6));
    }
    if (random_int(random, 0, 1) == 0) {
      test.output(test.build.dynamic_slice(x, starts, sizes));
    } else {
      const Shape part{std::span<const std::int64_t>(sizes)};
      const ValueId update = test.input({dtype, part}, random, 0, 100);
      test.output(test.build.dynamic_update_slice(x, update, starts));
    }
  });
}

TEST(Indexing, ReverseAgreesWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const Shape shape = random_shape(random, random_int(random, 0, kDimCountMax), 0, 4);
    std::vector<std::int64_t> dims;
    for (int dim = 0; dim < shape.size(); ++dim) {
      if (random_int(random, 0, 1) == 0) dims.push_back(dim);
    }
    const ValueId x = test.input({any_dtype(random, true), shape}, random, 0, 100);
    test.output(test.build.reverse(x, dims));
  });
}

TEST(Indexing, IsFiniteAgreesWithTheInterpreter) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    KernelCase test;
    const Elements x{0, 1, -3e38, infinity, -infinity, NAN, 2, 3, 4, 5, 6};
    test.output(test.build.unary(OpKind::is_finite, test.input({dtype, {11}}, x)));
    expect_exact(test);
  }
}

TEST(Indexing, RandomBitsAgreeWithTheInterpreter) {
  expect_exact_cases([](std::mt19937& random, KernelCase& test) {
    const ValueId state = test.input({DType::u32, {4}}, random, 0, 4e9);
    const Shape shape = random_shape(random, random_int(random, 0, 4), 0, 7);
    test.output(test.build.rng_bit_generator(state, shape));
  });
}

/// Tests ops whose dim 0 is sharded over both axes of a mesh (2,3), with the second axis major.
class IndexingOnAMesh : public ::testing::Test {
 protected:
  std::int64_t index_of(int position) const { return mesh_.index_in(position, atoms_); }

  Mesh mesh_{{2, 3}, {"data", "model"}};
  AtomList atoms_{2, 1};
  std::int64_t bits_ = static_cast<std::int64_t>(atoms_.bits());
  Program program_;
};

TEST_F(IndexingOnAMesh, GatherTakesTheChipsRows) {
  const ValueId table = program_.add_input({DType::f32, {2}}, InputKind::data, "x", {});
  const ValueId index = program_.add_input({DType::i32, {3}}, InputKind::data, "i", {});
  program_.add_output(program_.add_op(OpKind::gather, std::array{table, index}, std::array{bits_},
                                      {DType::f32, {3}}),
                      "y", {});
  const std::vector<Elements> inputs{{10, 20}, {4, 7, 5}};
  for (int position = 0; position < mesh_.size(); ++position) {
    const std::int64_t own = index_of(position);
    const Elements expected{own == 2 ? 10.0 : 0, own == 3 ? 20.0 : 0, own == 2 ? 20.0 : 0};
    EXPECT_EQ(run_kernels(program_, inputs, mesh_, position).at(0), expected);
  }
}

TEST_F(IndexingOnAMesh, ScatterAddsToTheChipsRows) {
  const ValueId index = program_.add_input({DType::i32, {3}}, InputKind::data, "i", {});
  const ValueId updates = program_.add_input({DType::f32, {3}}, InputKind::data, "x", {});
  program_.add_output(program_.add_op(OpKind::scatter, std::array{index, updates},
                                      std::array{std::int64_t{2}, bits_}, {DType::f32, {2}}),
                      "y", {});
  const std::vector<Elements> inputs{{4, 7, 5}, {1, 2, 3}};
  for (int position = 0; position < mesh_.size(); ++position) {
    const std::int64_t own = index_of(position);
    const Elements expected{own == 2 ? 1.0 : 0, own == 2 ? 3.0 : own == 3 ? 2.0 : 0};
    EXPECT_EQ(run_kernels(program_, inputs, mesh_, position).at(0), expected);
  }
}

TEST_F(IndexingOnAMesh, RandomBitsAreTheChipsPartOfTheWhole) {
  const Elements state{1, 2, 3, 4};
  Program whole;
  Builder build(whole);
  const TensorType type{DType::u32, {4}};
  whole.add_output(
      build.rng_bit_generator(whole.add_input(type, InputKind::data, "s", {}), {4, 6, 5}), "y", {});
  const Elements all = interpret(whole, {&state, 1}).at(0);
  const AtomList rows = mesh_.axis_atoms(0);
  const AtomList columns = mesh_.axis_atoms(1);
  const std::array attrs{static_cast<std::int64_t>(rows.bits()),
                         static_cast<std::int64_t>(columns.bits()), std::int64_t{0}};
  const ValueId input = program_.add_input(type, InputKind::data, "s", {});
  program_.add_output(
      program_.add_op(OpKind::rng_bit_generator, std::array{input}, attrs, {DType::u32, {2, 2, 5}}),
      "y", {});
  for (int position = 0; position < mesh_.size(); ++position) {
    Elements expected;
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 2; ++j) {
        const std::int64_t row = mesh_.index_in(position, rows) * 2 + i;
        const std::int64_t first = (row * 6 + mesh_.index_in(position, columns) * 2 + j) * 5;
        expected.insert(expected.end(), all.begin() + first, all.begin() + first + 5);
      }
    }
    EXPECT_EQ(run_kernels(program_, {&state, 1}, mesh_, position).at(0), expected);
  }
}

}  // namespace
}  // namespace weft::kernels::indexing_test
