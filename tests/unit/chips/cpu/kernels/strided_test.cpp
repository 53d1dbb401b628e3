#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::strided_test {
namespace {

constexpr std::array kDTypes{DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32,
                             DType::u32, DType::i64,  DType::i8,  DType::u8,  DType::pred};
constexpr int kCases = 300;

/// Returns a shape of 0 to `most` dims. Sometimes a dim has size 0, 1 or more than a tile.
Shape any_shape(std::mt19937& random, int most) {
  Shape shape = random_shape(random, random_int(random, 0, most), 1, 6);
  if (shape.size() > 0) {
    const std::array<std::int64_t, 4> special{0, 1, 17, 35};
    const auto pick = static_cast<std::size_t>(random_int(random, 0, 7));
    if (pick < special.size()) shape[random_int(random, 0, shape.size() - 1)] = special[pick];
  }
  return shape;
}

DType any_dtype(std::mt19937& random) {
  return kDTypes[static_cast<std::size_t>(random_int(random, 0, kDTypes.size() - 1))];
}

TEST(Strided, TransposeAgreesWithTheInterpreter) {
  for (unsigned seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    const Shape shape = any_shape(random, kDimCountMax);
    const ValueId x = test.input({any_dtype(random), shape}, random, 0, 100);
    std::vector<std::int64_t> perm(static_cast<std::size_t>(shape.size()));
    std::iota(perm.begin(), perm.end(), 0);
    std::ranges::shuffle(perm, random);
    test.output(test.build.transpose(x, perm));
    expect_exact(test);
  }
}

TEST(Strided, BroadcastAgreesWithTheInterpreter) {
  for (unsigned seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    const Shape result = any_shape(random, kDimCountMax);
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> sizes;
    for (int dim = 0; dim < result.size(); ++dim) {
      if (random_int(random, 0, 1) == 0) continue;  // this dim of the result is new
      dims.push_back(dim);
      sizes.push_back(random_int(random, 0, 2) == 0 ? 1 : result[dim]);
    }
    const Shape shape{std::span<const std::int64_t>(sizes)};
    const ValueId x = test.input({any_dtype(random), shape}, random, 0, 100);
    test.output(test.build.broadcast_in_dim(x, result, dims));
    expect_exact(test);
  }
}

/// Random attributes of a slice of x, or of the pad that would be the slice's inverse.
struct Window {
  std::vector<std::int64_t> start, limit, stride;

  Window(std::mt19937& random, const Shape& shape) {
    for (const std::int64_t size : shape) {
      const auto most = static_cast<int>(size);
      start.push_back(random_int(random, 0, most));
      limit.push_back(random_int(random, static_cast<int>(start.back()), most));
      stride.push_back(random_int(random, 1, 3));
    }
  }
};

TEST(Strided, SliceAgreesWithTheInterpreter) {
  for (unsigned seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    const Shape shape = any_shape(random, kDimCountMax);
    const Window window(random, shape);
    const ValueId x = test.input({any_dtype(random), shape}, random, 0, 100);
    test.output(test.build.slice(x, window.start, window.limit, window.stride));
    expect_exact(test);
  }
}

TEST(Assemble, PadAgreesWithTheInterpreter) {
  for (unsigned seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    const Shape shape = random_shape(random, random_int(random, 0, 4), 0, 5);
    std::array<std::vector<std::int64_t>, 3> counts;
    for (int dim = 0; dim < shape.size(); ++dim) {
      for (auto& list : counts) list.push_back(random_int(random, 0, 2));
    }
    const DType dtype = any_dtype(random);
    const ValueId x = test.input({dtype, shape}, random, 0, 100);
    const ValueId padding = test.input({dtype, {}}, random, 0, 100);
    test.output(test.build.pad(x, padding, counts[0], counts[1], counts[2]));
    expect_exact(test);
  }
}

TEST(Assemble, ConcatenateAgreesWithTheInterpreter) {
  for (unsigned seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    KernelCase test;
    Shape shape = random_shape(random, random_int(random, 1, 4), 0, 5);
    const int dim = random_int(random, 0, shape.size() - 1);
    const DType dtype = any_dtype(random);
    std::vector<ValueId> parts;
    for (int part = random_int(random, 1, 10); part > 0; --part) {
      shape[dim] = random_int(random, 0, 4);
      parts.push_back(test.input({dtype, shape}, random, 0, 100));
    }
    test.output(test.build.concatenate(parts, dim));
    expect_exact(test);
  }
}

TEST(Strided, ReshapeAndCopyKeepTheElements) {
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(to_string(dtype));
    std::mt19937 random(1);
    KernelCase test;
    const ValueId x = test.input({dtype, {4, 6, 5}}, random, 0, 100);
    test.output(test.build.copy(test.build.reshape(x, {20, 6})));
    expect_exact(test);
  }
}

TEST(Strided, AllSliceTakesTheChipsPart) {
  const Mesh mesh({2, 4}, {"data", "model"});
  Program program;
  Builder build(program);
  const ValueId x = program.add_input({DType::i32, {3, 16, 2}}, InputKind::data, "x", {});
  AtomList atoms = mesh.axis_atoms(1);
  atoms.append(mesh.axis_atoms(0));
  program.add_output(build.all_slice(mesh, x, atoms, 1), "y", {});
  Elements elements(3 * 16 * 2);
  std::iota(elements.begin(), elements.end(), 0);
  for (int position = 0; position < mesh.size(); ++position) {
    const std::int64_t first = mesh.index_in(position, atoms) * 2;
    Elements expected;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = first; j < first + 2; ++j) {
        for (std::int64_t k = 0; k < 2; ++k) {
          expected.push_back(static_cast<double>((i * 16 + j) * 2 + k));
        }
      }
    }
    EXPECT_EQ(run_kernels(program, {&elements, 1}, mesh, position).at(0), expected);
  }
}

}  // namespace
}  // namespace weft::kernels::strided_test
