// Tests that no bit of a query's result and cotangent depends on keys and values that the query
// doesn't see, even if these are infinite or NaN.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "tests/unit/chips/cpu/attention/hiding.hpp"
#include "tests/unit/chips/cpu/attention/paths.hpp"

namespace weft::kernels::unseen_test {
namespace {

using testing::Hiding;
using testing::kAllHidings;
using testing::OddKeys;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kQueries = 37;
constexpr std::int64_t kKeys = 70;
constexpr std::int64_t kSize = 6;

/// The indices of the keys that aren't finite.
constexpr OddKeys kOdd{3, 8, 21, 33};

ValueId add_bias(KernelCase& test, Hiding way, DType dtype) {
  if (way == Hiding::causal) return kNoId;
  const bool is_mask = way == Hiding::mask || way == Hiding::row_mask;
  const bool of_all = way == Hiding::row_mask || way == Hiding::row_added;
  const std::int64_t rows = of_all ? 1 : kQueries;
  Elements elements;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const bool is_seen = sees(way, kOdd, i, j);
      elements.push_back(is_mask ? (is_seen ? 1 : 0) : is_seen ? 0.25 : -kInfinity);
    }
  }
  return test.input({is_mask ? DType::pred : dtype, {1, 1, rows, kKeys}}, elements);
}

/// Returns the result and the cotangents of q, k and v, with the numbers `odd` in the rows kOdd of
/// keys and values.
std::vector<Elements> run(Hiding way, DType dtype, const std::array<double, 4>& odd) {
  KernelCase test;
  std::mt19937 random(5);
  const auto input = [&](std::int64_t rows) {
    return test.input({dtype, {1, 1, rows, kSize}}, random, -1, 1);
  };
  const ValueId q = input(kQueries);
  const ValueId g = input(kQueries);
  const ValueId k = input(kKeys);
  const ValueId v = input(kKeys);
  for (const std::size_t operand : {2, 3}) {
    for (std::size_t i = 0; i < kOdd.size(); ++i) {
      const std::int64_t at = kOdd[i] * kSize + static_cast<std::int64_t>(i + operand) % kSize;
      test.inputs[operand][static_cast<std::size_t>(at)] = odd[i];
    }
  }
  const AttentionForm form{.causal = way == Hiding::causal, .scale = 0.5};
  const ValueId bias = add_bias(test, way, dtype);
  const ValueId y = test.build.attention(q, k, v, form, bias);
  test.output(y);
  test.output(test.build.attention_grad(q, k, v, y, g, form, bias));
  return run_kernels(test);
}

void expect_rows(const Elements& actual, const Elements& expected, std::int64_t row) {
  const auto first = static_cast<std::size_t>(row * kSize);
  for (std::size_t i = first; i < first + kSize; ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(actual[i]), std::bit_cast<std::uint64_t>(expected[i]))
        << "row " << row << ": " << actual[i] << ", expected " << expected[i];
  }
}

void expect_unseen(Hiding way, DType dtype) {
  const std::vector<Elements> plain = run(way, dtype, {0.5, -0.25, 0.125, 1});
  const std::vector<Elements> odd = run(way, dtype, {kNaN, kInfinity, -kInfinity, kNaN});
  for (std::int64_t query = 0; query < kQueries; ++query) {
    if (sees_an_odd_one(way, kOdd, query)) continue;
    SCOPED_TRACE(query);
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[0], plain[0], query));
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[1], plain[1], query));
  }
  if (way != Hiding::row_mask && way != Hiding::row_added) return;
  // No query sees the keys in these rows. So the numbers in the rows change no other cotangent, and
  // not the rows' own cotangents.
  for (std::int64_t key = 0; key < kKeys; ++key) {
    for (const std::int64_t row : {kQueries + key, kQueries + kKeys + key}) {
      ASSERT_NO_FATAL_FAILURE(expect_rows(odd[1], plain[1], row));
    }
  }
}

TEST(UnseenKeys, ReachNoResultAndNoCotangentOnAnyPath) {
  const PathScope scope;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      for (const Hiding way : kAllHidings) {
        SCOPED_TRACE(fmt::format("vectors {}, {}, way {}", static_cast<int>(path.vectors),
                                 to_string(dtype), static_cast<int>(way)));
        ASSERT_NO_FATAL_FAILURE(expect_unseen(way, dtype));
      }
    }
  }
}

TEST(UnseenKeys, ThatAQuerySeesReachIt) {
  const PathScope scope;
  for (const KernelPath& path : paths()) {
    set_kernel_path(path);
    const std::vector<Elements> odd = run(Hiding::causal, DType::f32, {kNaN, 1, 1, 1});
    for (std::int64_t query = 3; query < kQueries; ++query) {
      EXPECT_TRUE(std::isnan(odd[0][static_cast<std::size_t>(query * kSize)])) << query;
    }
  }
}

}  // namespace
}  // namespace weft::kernels::unseen_test
