#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tests/unit/actors/device/cpu/kernels/kernel_case.hpp"

namespace weft::kernels::attention_test {
namespace {

/// Around the edges of the kernels' tiles.
constexpr std::array kQueries{1, 5, 63, 64, 65, 130};
constexpr std::array kKeys{1, 7, 255, 256, 257, 300};

struct Operands {
  ValueId q, k, v;
};

Operands operands_of(KernelCase& test, DType dtype, std::mt19937& random, std::int64_t key_size,
                     std::int64_t value_size) {
  const std::int64_t batch = random_int(random, 1, 2);
  const std::int64_t heads = random_int(random, 1, 2);
  const std::int64_t queries = kQueries[static_cast<std::size_t>(random_int(random, 0, 5))];
  const std::int64_t keys = kKeys[static_cast<std::size_t>(random_int(random, 0, 5))];
  const auto input = [&](std::int64_t rows, std::int64_t size) {
    return test.input({dtype, {batch, heads, rows, size}}, random, -1, 1);
  };
  const ValueId q = input(queries, key_size);
  const ValueId k = input(keys, key_size);
  return {q, k, input(keys, value_size)};
}

constexpr std::array kDTypes{DType::f32, DType::bf16, DType::f16, DType::f64};

/// `make` appends the op under test; `scale` is that of its elements.
void expect_reference(unsigned seed, double scale,
                      const std::function<ValueId(KernelCase&, DType, std::mt19937&)>& make) {
  const DType dtype = kDTypes[seed % kDTypes.size()];
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
  std::mt19937 random(seed);
  KernelCase test;
  test.output(make(test, dtype, random));
  expect_near(test, dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 2.5e-3 : 1e-5, scale);
}

TEST(Attention, AgreesWithTheReference) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    expect_reference(seed, 1, [=](KernelCase& test, DType dtype, std::mt19937& random) {
      const std::int64_t key_size = random_int(random, 1, 17);
      const auto [q, k, v] = operands_of(test, dtype, random, key_size, random_int(random, 1, 17));
      return test.build.attention(q, k, v, {.causal = seed % 2 == 0, .scale = 0.5});
    });
  }
}

TEST(Attention, GradAgreesWithTheReference) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    // A key's cotangent is a sum over the queries.
    expect_reference(seed, 10, [=](KernelCase& test, DType dtype, std::mt19937& random) {
      const std::int64_t size = random_int(random, 1, 17);
      const auto [q, k, v] = operands_of(test, dtype, random, size, size);
      const AttentionForm form{.causal = seed % 2 == 0, .scale = 0.5};
      const ValueId y = test.build.attention(q, k, v, form);
      const ValueId g = test.input(test.build.type(y), random, -1, 1);
      return test.build.attention_grad(q, k, v, y, g, form);
    });
  }
}

TEST(Attention, AChipsFirstQueryHasItsPlaceInTheWhole) {
  std::mt19937 random(1);
  KernelCase whole;
  const ValueId q = whole.input({DType::f32, {1, 1, 6, 4}}, random, -1, 1);
  const ValueId k = whole.input({DType::f32, {1, 1, 6, 4}}, random, -1, 1);
  whole.output(whole.build.attention(q, k, k, {.causal = true}));
  const Elements expected = run_kernels(whole).at(0);
  const Mesh mesh({2}, {"data"});
  for (int position = 0; position < mesh.size(); ++position) {
    Program program;
    const TensorType part{DType::f32, {1, 1, 3, 4}};
    const ValueId queries = program.add_input(part, InputKind::data, "q", {});
    const ValueId keys = program.add_input({DType::f32, {1, 1, 6, 4}}, InputKind::data, "k", {});
    std::vector<std::int64_t> attrs = to_attrs(AttentionForm{.causal = true});
    attrs.push_back(static_cast<std::int64_t>(mesh.axis_atoms(0).bits()));
    program.add_output(
        program.add_op(OpKind::attention, std::array{queries, keys, keys}, attrs, part), "y", {});
    const auto half = [&](const Elements& all) {
      const auto first = all.begin() + position * 12;
      return Elements(first, first + 12);
    };
    const std::array inputs{half(whole.inputs[0]), whole.inputs[1]};
    const Elements actual = run_kernels(program, inputs, mesh, position).at(0);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i], half(expected)[i], 1e-6) << "position " << position;
    }
  }
}

TEST(Attention, OfNoQueriesGivesKeysNothing) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    KernelCase test;
    const ValueId none = test.input({dtype, {1, 2, 0, 3}}, Elements{});
    const ValueId k = test.input({dtype, {1, 2, 2, 3}}, Elements(12, 1.0));
    const ValueId y = test.build.attention(none, k, k, {});
    test.output(test.build.attention_grad(none, k, k, y, y, {}));
    expect_exact(test);
  }
}

TEST(Attention, TwoRunsAgreeBitwise) {
  std::mt19937 random(5);
  KernelCase test;
  const auto [q, k, v] = operands_of(test, DType::f32, random, 16, 16);
  const ValueId y = test.build.attention(q, k, v, {.causal = true});
  test.output(y);
  test.output(test.build.attention_grad(q, k, v, y, y, {.causal = true}));
  EXPECT_EQ(run_kernels(test), run_kernels(test));
}

}  // namespace
}  // namespace weft::kernels::attention_test
