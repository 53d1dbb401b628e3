#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/unit/chips/cpu/attention/paths.hpp"

namespace weft::kernels::bias_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kDTypes{DType::f32, DType::bf16, DType::f16, DType::f64};

/// The inputs q[2,2,queries,size], k and v[2,2,keys,size], and a cotangent g of the result.
struct Operands {
  ValueId q, k, v, g;
};

Operands add_operands(KernelCase& test, DType dtype, std::mt19937& random, std::int64_t queries,
                      std::int64_t keys, std::int64_t size) {
  const auto input = [&](std::int64_t rows) {
    return test.input({dtype, {2, 2, rows, size}}, random, -1, 1);
  };
  const ValueId q = input(queries);
  const ValueId k = input(keys);
  const ValueId v = input(keys);
  return {q, k, v, input(queries)};
}

/// Adds attention and its gradient as two outputs.
void add_both(KernelCase& test, const Operands& of, const AttentionForm& form, ValueId bias) {
  const ValueId y = test.build.attention(of.q, of.k, of.v, form, bias);
  test.output(y);
  test.output(test.build.attention_grad(of.q, of.k, of.v, y, of.g, form, bias));
}

double tolerance(DType dtype) {
  return dtype == DType::bf16 ? 3e-2 : dtype == DType::f16 ? 4e-3 : 1e-5;
}

/// Returns the elements of a mask (0 or 1) or of a bias (-2 to 2, or -inf for one element in
/// eight). Long runs of keys may be hidden, so that in some tiles, and for some queries, all keys
/// are hidden.
Elements bias_elements(std::mt19937& random, const Shape& shape, bool is_mask) {
  Elements elements;
  const int run = random_int(random, 1, 3) == 1 ? 90 : 1;
  bool hidden = false;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    if (i % run == 0) hidden = random_int(random, 0, is_mask ? 1 : 7) == 0;
    elements.push_back(is_mask  ? (hidden ? 0 : 1)
                       : hidden ? -kInfinity
                                : random_int(random, -8, 8) / 4.0);
  }
  return elements;
}

/// Compares attention and its gradient with the interpreter. The bias has full size in the dims
/// whose bit in `whole` is set, and size 1 in all others.
void expect_form(unsigned seed, DType dtype, int whole, bool is_mask, bool causal) {
  constexpr std::array kQueries{1, 7, 31, 33, 70};
  constexpr std::array kKeys{1, 15, 63, 65, 200};
  std::mt19937 random(seed);
  const std::int64_t queries = kQueries[static_cast<std::size_t>(random_int(random, 0, 4))];
  const std::int64_t keys = kKeys[static_cast<std::size_t>(random_int(random, 0, 4))];
  const Shape scores{2, 2, queries, keys};
  Shape shape = scores;
  for (int dim = 0; dim < 4; ++dim) {
    if ((whole >> dim) % 2 == 0) shape[dim] = 1;
  }
  SCOPED_TRACE(fmt::format("seed {}, {}, bias {} of scores {}, mask {}, causal {}", seed,
                           to_string(dtype), shape.to_string(), scores.to_string(), is_mask,
                           causal));
  KernelCase test;
  const Operands of = add_operands(test, dtype, random, queries, keys, random_int(random, 1, 20));
  const ValueId bias =
      test.input({is_mask ? DType::pred : dtype, shape}, bias_elements(random, shape, is_mask));
  add_both(test, of, {.causal = causal, .scale = 0.5}, bias);
  expect_reference_on_paths(test, tolerance(dtype));
}

TEST(AttentionBias, OfEveryFormAgreesWithTheReferenceAndOnEveryPath) {
  unsigned seed = 0;
  for (const DType dtype : kDTypes) {
    for (int whole = 0; whole < 16; ++whole) {
      for (const bool is_mask : {false, true}) {
        for (const bool causal : {false, true}) {
          expect_form(++seed, dtype, whole, is_mask, causal);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(AttentionBias, HidesAllKeysOfAQuery) {
  for (const DType dtype : kDTypes) {
    for (const bool is_mask : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, mask {}", to_string(dtype), is_mask));
      std::mt19937 random(3);
      KernelCase test;
      const Operands of = add_operands(test, dtype, random, 35, 130, 6);
      Elements sees(35 * 130, is_mask ? 1 : 0);
      std::fill_n(sees.begin() + 2 * 130, 130, is_mask ? 0 : -kInfinity);
      add_both(test, of, {.scale = 0.5},
               test.input({is_mask ? DType::pred : dtype, {1, 1, 35, 130}}, sees));
      expect_reference_on_paths(test, tolerance(dtype));
      const std::vector<Elements> actual = run_kernels(test);
      const auto row = [](const Elements& all) { return Elements(&all[12], &all[18]); };
      EXPECT_EQ(row(actual[0]), Elements(6, 0));  // the result of the query
      EXPECT_EQ(row(actual[1]), Elements(6, 0));  // the query's cotangent
    }
  }
}

/// Returns the two outputs of add_both(): attention with this bias, and its gradient.
std::vector<Elements> attended(const AttentionForm& form, DType dtype, const Elements& bias) {
  std::mt19937 random(4);
  KernelCase test;
  const Operands of = add_operands(test, DType::f32, random, 150, 150, 24);
  add_both(test, of, form, bias.empty() ? kNoId : test.input({dtype, {1, 1, 150, 150}}, bias));
  return run_kernels(test);
}

TEST(AttentionBias, IsWhatAMaskOfTheSameKeysIs) {
  Elements sees;
  Elements added;
  Elements nothing(150 * 150, 0);
  for (int i = 0; i < 150; ++i) {
    for (int j = 0; j < 150; ++j) {
      sees.push_back(j <= i ? 1 : 0);
      added.push_back(j <= i ? 0 : -kInfinity);
    }
  }
  const std::vector<Elements> causal = attended({.causal = true, .scale = 0.3}, {}, {});
  EXPECT_EQ(attended({.scale = 0.3}, DType::pred, sees), causal);
  EXPECT_EQ(attended({.scale = 0.3}, DType::f32, added), causal);
  EXPECT_EQ(attended({.causal = true, .scale = 0.3}, DType::f32, nothing), causal);
}

TEST(AttentionBias, HidesAScoreThatIsNaN) {
  const PathScope scope;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    KernelCase test;
    Elements keys(70, 1.0);
    keys[3] = std::numeric_limits<double>::quiet_NaN();
    keys[5] = kInfinity;
    Elements sees(70, 1.0);
    sees[3] = sees[5] = 0;
    const ValueId q = test.input({DType::f32, {1, 1, 1, 1}}, Elements{1});
    const ValueId k = test.input({DType::f32, {1, 1, 70, 1}}, keys);
    const ValueId v = test.input({DType::f32, {1, 1, 70, 1}}, Elements(70, 2.0));
    test.output(test.build.attention(q, k, v, {.scale = 1},
                                     test.input({DType::pred, {1, 1, 1, 70}}, sees)));
    EXPECT_EQ(run_kernels(test).at(0).at(0), 2);
  }
}

TEST(AttentionBias, GivesAHiddenKeyThatIsNaNNoCotangent) {
  const PathScope scope;
  std::mt19937 random(7);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const KernelPath& path : paths()) {
      set_kernel_path(path);
      KernelCase test;
      Elements keys(70 * 2, 1.0);
      keys[6] = std::numeric_limits<double>::quiet_NaN();
      keys[11] = kInfinity;
      Elements sees(3 * 70, 1.0);
      for (const std::size_t hidden : {3, 5}) {
        for (std::size_t query = 0; query < 3; ++query) sees[query * 70 + hidden] = 0;
      }
      const ValueId q = test.input({dtype, {1, 1, 3, 2}}, random, -1, 1);
      const ValueId k = test.input({dtype, {1, 1, 70, 2}}, keys);
      const ValueId v = test.input({dtype, {1, 1, 70, 2}}, random, -1, 1);
      const ValueId mask = test.input({DType::pred, {1, 1, 3, 70}}, sees);
      const ValueId y = test.build.attention(q, k, v, {.scale = 1}, mask);
      test.output(test.build.attention_grad(q, k, v, y, q, {.scale = 1}, mask));
      const Elements cotangents = run_kernels(test).at(0);
      // The first elements, which this loop skips, are the queries' cotangents.
      for (std::size_t i = 3 * 2; i < cotangents.size(); ++i) {
        ASSERT_TRUE(std::isfinite(cotangents[i])) << to_string(dtype) << ", element " << i;
      }
      for (const std::size_t hidden : {3, 5}) {
        for (const std::size_t e : {0, 1}) {
          EXPECT_EQ(cotangents[(3 + hidden) * 2 + e], 0);       // the key's cotangent
          EXPECT_EQ(cotangents[(3 + 70 + hidden) * 2 + e], 0);  // the cotangent of the key's value
        }
      }
    }
  }
}

TEST(AttentionBias, OfAChipIsThatOfItsQueries) {
  std::mt19937 random(6);
  KernelCase whole;
  const Operands of = add_operands(whole, DType::f32, random, 6, 6, 4);
  const ValueId bias = whole.input({DType::f32, {1, 1, 6, 6}}, random, -1, 1);
  whole.output(whole.build.attention(of.q, of.k, of.v, {.causal = true}, bias));
  const Elements expected = run_kernels(whole).at(0);
  const Mesh mesh({2}, {"data"});
  /// Returns the rows of the chip at `position`: three of every six rows.
  const auto half = [](const Elements& all, std::size_t size, int position) {
    Elements part;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int>(i / size % 6 / 3) == position) part.push_back(all[i]);
    }
    return part;
  };
  for (int position = 0; position < mesh.size(); ++position) {
    Program program;
    const auto input = [&](const Shape& shape) {
      return program.add_input({DType::f32, shape}, InputKind::data, "x", {});
    };
    const TensorType part{DType::f32, {2, 2, 3, 4}};
    const ValueId q = input(part.shape);
    const ValueId k = input({2, 2, 6, 4});
    const ValueId v = input({2, 2, 6, 4});
    const std::array operands{q, k, v, input({1, 1, 3, 6})};
    std::vector<std::int64_t> attrs = to_attrs(AttentionForm{.causal = true});
    attrs.push_back(static_cast<std::int64_t>(mesh.axis_atoms(0).bits()));
    program.add_output(program.add_op(OpKind::attention, operands, attrs, part), "y", {});
    const std::array inputs{half(whole.inputs[0], 4, position), whole.inputs[1], whole.inputs[2],
                            half(whole.inputs[4], 6, position)};
    const Elements actual = run_kernels(program, inputs, mesh, position).at(0);
    const Elements own = half(expected, 4, position);
    ASSERT_EQ(actual.size(), own.size());
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(actual[i], own[i], 1e-6);
  }
}

}  // namespace
}  // namespace weft::kernels::bias_test
