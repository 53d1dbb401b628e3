#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/chips/cpu/attention/paths.hpp"

namespace weft::kernels::attention_test {
namespace {

/// These sizes are below, at and above multiples of the kernels' tile sizes.
constexpr std::array kQueries{1, 7, 31, 32, 33, 130};
constexpr std::array kKeys{1, 15, 63, 64, 65, 200};
/// A row of the smallest size fills only a part of a vector register; larger rows need several.
constexpr std::array kSizes{1, 8, 20, 32, 64, 80, 128};

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

/// Compares the op that `make` appends with the interpreter; `scale` is the magnitude of its
/// elements.
void expect_reference(unsigned seed, double scale,
                      const std::function<ValueId(KernelCase&, DType, std::mt19937&)>& make) {
  const DType dtype = kDTypes[seed % kDTypes.size()];
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(dtype)));
  std::mt19937 random(seed);
  KernelCase test;
  test.output(make(test, dtype, random));
  expect_near(test, dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 2.5e-3 : 1e-5, scale);
}

/// Adds attention of [1,2,queries,size] over [1,2,keys,size] and its gradient, as two outputs.
void add_both(KernelCase& test, DType dtype, std::mt19937& random, std::int64_t queries,
              std::int64_t keys, std::int64_t size, bool causal) {
  const auto input = [&](std::int64_t rows) {
    return test.input({dtype, {1, 2, rows, size}}, random, -1, 1);
  };
  const AttentionForm form{.causal = causal, .scale = 2 / std::sqrt(static_cast<double>(size))};
  const ValueId q = input(queries);
  const ValueId k = input(keys);
  const ValueId v = input(keys);
  const ValueId y = test.build.attention(q, k, v, form);
  test.output(y);
  test.output(test.build.attention_grad(q, k, v, y, input(queries), form));
}

TEST(Attention, OfEverySizeAgreesWithTheReferenceAndOnEveryPath) {
  unsigned seed = 0;
  for (const std::int64_t length : {1, 31, 33, 63, 65, 130}) {
    for (const std::int64_t size : kSizes) {
      const DType dtype = kDTypes[++seed % kDTypes.size()];
      SCOPED_TRACE(fmt::format("T {}, size {}, {}", length, size, to_string(dtype)));
      std::mt19937 random(seed);
      KernelCase test;
      add_both(test, dtype, random, length, length, size, seed % 3 != 0);
      const double relative = dtype == DType::bf16 ? 3e-2 : dtype == DType::f16 ? 4e-3 : 1e-5;
      expect_reference_on_paths(test, relative);
      if (HasFatalFailure()) return;
    }
  }
}

// The kernel for bf16 multiplies pairs of neighbors along rows, queries or keys, and each of these
// counts may be odd.
TEST(Attention, OfBf16AgreesForOddAndEvenSizes) {
  unsigned seed = 0;
  for (const std::int64_t queries : {1, 2, 15, 17, 32, 47, 65}) {
    for (const std::int64_t keys : {1, 2, 9, 63, 64, 66, 131}) {
      for (const std::int64_t size : {2, 6, 9, 32, 40}) {
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(fmt::format("S {}, T {}, size {}, causal {}", queries, keys, size, causal));
          std::mt19937 random(++seed);
          KernelCase test;
          add_both(test, DType::bf16, random, queries, keys, size, causal);
          expect_reference_on_paths(test, 3e-2);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Expects the interpreter's results, forward and backward, for a query that has these scores. The
/// query's only element is 1, so the keys equal the scores.
void expect_scores_are_taken(DType dtype, const Elements& scores) {
  KernelCase test;
  const auto count = static_cast<std::int64_t>(scores.size());
  Elements values(scores.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  const ValueId q = test.input({dtype, {1, 1, 1, 1}}, Elements{1});
  const ValueId k = test.input({dtype, {1, 1, count, 1}}, scores);
  const ValueId v = test.input({dtype, {1, 1, count, 1}}, values);
  const ValueId y = test.build.attention(q, k, v, {.scale = 1});
  test.output(y);
  test.output(test.build.attention_grad(q, k, v, y, q, {.scale = 1}));
  const std::vector<Elements> actual = run_kernels(test);
  const std::vector<Elements> expected = interpret(test.program, test.inputs);
  EXPECT_NEAR(actual[0][0], expected[0][0], 1e-5);
  const auto [least, most] = std::ranges::minmax(scores);
  const double largest = std::max({1.0, -least, most});
  for (std::size_t i = 0; i < expected[1].size(); ++i) {
    // Element 0, the query's cotangent, is a sum of keys of both signs, so its tolerance is in
    // proportion to the largest key.
    EXPECT_NEAR(actual[1][i], expected[1][i], 1e-5 * (i == 0 ? largest : 1)) << i;
  }
}

/// Returns the forward result of a query with these scores, in f32, if all values are 2.
double attended(const Elements& scores) {
  KernelCase test;
  const auto count = static_cast<std::int64_t>(scores.size());
  const ValueId q = test.input({DType::f32, {1, 1, 1, 1}}, Elements{1});
  const ValueId k = test.input({DType::f32, {1, 1, count, 1}}, scores);
  const ValueId v = test.input({DType::f32, {1, 1, count, 1}}, Elements(scores.size(), 2.0));
  test.output(test.build.attention(q, k, v, {.scale = 1}));
  return run_kernels(test).at(0).at(0);
}

TEST(Attention, TakesLargeScores) {
  const PathScope scope;
  Elements rising(200);  // the largest score grows from tile to tile, and e^score overflows
  for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = 1e4 * static_cast<double>(i / 50);
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(fmt::format("vectors {}, {}", static_cast<int>(path.vectors), to_string(dtype)));
      expect_scores_are_taken(dtype, rising);
      expect_scores_are_taken(dtype, Elements(rising.rbegin(), rising.rend()));
      expect_scores_are_taken(dtype, Elements(130, 1e30));
      expect_scores_are_taken(dtype, Elements(130, -3e38));
    }
  }
}

TEST(Attention, TakesInfiniteScores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const PathScope scope;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    Elements scores(70, -kInfinity);  // all scores of the first tile are -inf
    scores.resize(130, 1.5);
    EXPECT_EQ(attended(scores), 2);
    EXPECT_EQ(attended(Elements(scores.rbegin(), scores.rend())), 2);
    EXPECT_TRUE(std::isnan(attended(Elements(130, -kInfinity))));
    for (const double score : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
      for (const std::size_t at : {std::size_t{3}, std::size_t{129}}) {
        Elements with = scores;
        with[at] = score;
        EXPECT_TRUE(std::isnan(attended(with))) << score << " at " << at;
      }
    }
  }
}

TEST(Attention, AgreesWithTheReference) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    expect_reference(seed, 1, [=](KernelCase& test, DType dtype, std::mt19937& random) {
      const std::int64_t key_size = random_int(random, 1, 17);
      const auto [q, k, v] = operands_of(test, dtype, random, key_size, random_int(random, 1, 17));
      return test.build.attention(q, k, v, {.causal = seed / 4 % 2 == 0, .scale = 0.5});
    });
  }
}

TEST(Attention, GradAgreesWithTheReference) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    // The scale is 10 because a key's cotangent is a sum over all queries.
    expect_reference(seed, 10, [=](KernelCase& test, DType dtype, std::mt19937& random) {
      const std::int64_t size = random_int(random, 1, 17);
      const auto [q, k, v] = operands_of(test, dtype, random, size, size);
      const AttentionForm form{.causal = seed / 4 % 2 == 0, .scale = 0.5};
      const ValueId y = test.build.attention(q, k, v, form);
      const ValueId g = test.input(test.build.type(y), random, -1, 1);
      return test.build.attention_grad(q, k, v, y, g, form);
    });
  }
}

/// Computes causal attention of 18 queries on two chips. The second chip's first query is 9, which
/// isn't a multiple of the number of keys that one product takes.
void expect_parts_of_the_whole(DType dtype) {
  std::mt19937 random(1);
  KernelCase whole;
  const ValueId q = whole.input({dtype, {1, 1, 18, 4}}, random, -1, 1);
  const ValueId k = whole.input({dtype, {1, 1, 18, 4}}, random, -1, 1);
  whole.output(whole.build.attention(q, k, k, {.causal = true}));
  const Elements expected = interpret(whole.program, whole.inputs).at(0);
  const Mesh mesh({2}, {"data"});
  for (int position = 0; position < mesh.size(); ++position) {
    Program program;
    const TensorType part{dtype, {1, 1, 9, 4}};
    const ValueId queries = program.add_input(part, InputKind::data, "q", {});
    const ValueId keys = program.add_input({dtype, {1, 1, 18, 4}}, InputKind::data, "k", {});
    std::vector<std::int64_t> attrs = to_attrs(AttentionForm{.causal = true});
    attrs.push_back(static_cast<std::int64_t>(mesh.axis_atoms(0).bits()));
    program.add_output(
        program.add_op(OpKind::attention, std::array{queries, keys, keys}, attrs, part), "y", {});
    const auto half = [&](const Elements& all) {
      const auto first = all.begin() + position * 36;
      return Elements(first, first + 36);
    };
    const std::array inputs{half(whole.inputs[0]), whole.inputs[1]};
    const Elements actual = run_kernels(program, inputs, mesh, position).at(0);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_NEAR(actual[i], half(expected)[i], dtype == DType::bf16 ? 1e-2 : 1e-6)
          << "position " << position;
    }
  }
}

TEST(Attention, AChipsFirstQueryHasItsPlaceInTheWhole) {
  const PathScope scope;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      SCOPED_TRACE(fmt::format("vectors {}, {}", static_cast<int>(path.vectors), to_string(dtype)));
      expect_parts_of_the_whole(dtype);
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

TEST(Attention, MemoryGrowsWithTheLengthNotWithItsSquare) {
  const Mesh mesh({1}, {"data"});
  const auto bytes = [&](bool gradient, bool masked, std::int64_t length) {
    KernelCase test;
    const ValueId x =
        test.program.add_input({DType::bf16, {1, 4, length, 64}}, InputKind::data, "x", {});
    ValueId mask = kNoId;
    if (masked) {
      mask = test.program.add_input({DType::pred, {1, 1, 1, length}}, InputKind::data, "m", {});
    }
    const ValueId y = test.build.attention(x, x, x, {.causal = true}, mask);
    if (gradient) test.build.attention_grad(x, x, x, y, y, {.causal = true}, mask);
    return prepare(test.program, test.program.num_ops() - 1, {mesh, 0, nullptr}).scratch_bytes;
  };
  for (const bool gradient : {false, true}) {
    for (const bool masked : {false, true}) {
      EXPECT_LT(bytes(gradient, masked, 32768), 2 * bytes(gradient, masked, 16384));
      EXPECT_LT(bytes(gradient, masked, 32768), std::size_t{64} << 20);
    }
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
