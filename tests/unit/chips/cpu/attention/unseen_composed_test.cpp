// Tests attention without the kernel: with dropout, with a bias that has a gradient, or with keys
// divided over chips. Infinite or NaN keys and values that a query doesn't see affect neither its
// result nor its cotangent.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <weft/nn/attention.hpp>
#include <weft/nn/module.hpp>
#include <weft/sharding/shard_map.hpp>

#include "tests/support/engine_runtime.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/chips/cpu/attention/hiding.hpp"

namespace weft::unseen_composed_test {
namespace {

using testing::EngineRuntime;
using testing::Hiding;
using testing::kAllHidings;
using testing::OddKeys;
using testing::SimulateRuntime;
using Numbers = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kLength = 12;
constexpr std::int64_t kSize = 4;
/// The indices of the keys that aren't finite.
constexpr OddKeys kOdd{3, 5, 8, 10};
using OddNumbers = std::array<double, 4>;
constexpr OddNumbers kPlain{0.5, -0.25, 0.125, 1};
constexpr OddNumbers kStrange{kNaN, kInfinity, -kInfinity, kNaN};

enum class Form { dropout, bias, cut, ring };
constexpr std::array kAllForms{Form::dropout, Form::bias, Form::cut, Form::ring};

Parameter parameter(const char* name, double pace, const OddNumbers* odd, std::size_t first) {
  std::vector<float> elements;
  for (std::int64_t i = 0; i < kLength * kSize; ++i) {
    elements.push_back(static_cast<float>(std::sin(pace * static_cast<double>(i))));
  }
  for (std::size_t i = 0; odd != nullptr && i < kOdd.size(); ++i) {
    const std::int64_t at = kOdd[i] * kSize + static_cast<std::int64_t>(i + first) % kSize;
    elements[static_cast<std::size_t>(at)] = static_cast<float>((*odd)[i]);
  }
  return make_parameter(name, elements, {1, 1, kLength, kSize});
}

struct Case {
  Form form;
  Hiding way;
  DType dtype;

  /// Returns the mask or the bias that hides keys; an undefined tensor for causal attention.
  Tensor shown() const {
    if (way == Hiding::causal) return {};
    std::vector<std::int32_t> elements;
    for (std::int64_t i = 0; i < kLength; ++i) {
      for (std::int64_t j = 0; j < kLength; ++j) elements.push_back(sees(way, kOdd, i, j) ? 1 : 0);
    }
    return equal(to_device(elements, {kLength, kLength}), 1.0);
  }

  AttentionOptions options() const {
    AttentionOptions options{.causal = way == Hiding::causal, .scale = 0.5};
    if (form == Form::dropout) options.dropout = 1e-12;
    const Tensor seen = shown();
    const bool is_mask = way == Hiding::mask || way == Hiding::row_mask;
    if (is_mask) options.mask = seen;
    if (seen.defined() && !is_mask) options.bias = cast(where(seen, 0.25, -kInfinity), dtype);
    if (form != Form::bias) return options;
    const std::vector<float> same(static_cast<std::size_t>(kLength * kLength), 0.125F);
    const Tensor slope = cast(make_parameter("bias", same, {kLength, kLength}), dtype);
    options.bias = options.bias.defined() ? options.bias + slope : slope;
    return options;
  }

  Tensor attend(const Mesh& mesh, const Tensor& q, const Tensor& k, const Tensor& v) const {
    if (form == Form::ring) {
      const PartitionSpec part{{}, {}, "keys"};
      const auto ring = [&](const Tensor& q_part, const Tensor& k_part, const Tensor& v_part) {
        return ring_attention(q_part, k_part, v_part, "keys", {.causal = true, .scale = 0.5});
      };
      return shard_map(ring, mesh, {part, part, part}, part)(q, k, v);
    }
    return attention(q, k, v, options());
  }
};

/// Returns the result and the cotangents of q, k and v on the engine or in the simulator, with the
/// numbers `odd` in the rows kOdd of keys and values.
template <typename AnyRuntime>
std::vector<Numbers> run(const Case& test, const OddNumbers& odd) {
  const Mesh mesh({2}, {"keys"});
  AnyRuntime runtime(mesh);
  const RuntimeScope scope(runtime);
  const std::vector<Parameter> all{parameter("q", 0.7, nullptr, 0), parameter("k", 0.3, &odd, 0),
                                   parameter("v", 1.1, &odd, 1)};
  if (test.form == Form::cut) {
    for (const int i : {1, 2}) {
      mark_sharding(all[static_cast<std::size_t>(i)], mesh, {{}, {}, "keys", {}});
    }
  }
  const Tensor y = test.attend(mesh, cast(all[0], test.dtype), cast(all[1], test.dtype),
                               cast(all[2], test.dtype));
  // The loss leaves out queries that see an infinity or a NaN, because their terms are NaN.
  std::vector<std::int32_t> counts;
  for (std::int64_t i = 0; i < kLength; ++i)
    counts.push_back(sees_an_odd_one(test.way, kOdd, i) ? 0 : 1);
  const Tensor is_counted = equal(to_device(counts, {kLength, 1}), 1.0);
  const Tensor loss =
      sum(where(is_counted, cast(y, DType::f32), 0.0) * sin(iota({kLength, kSize}, 0, DType::f32)));
  std::vector<Tensor> results{y};
  for (const Tensor& slope : grad(loss, all)) results.push_back(slope);
  std::vector<Numbers> numbers;
  for (const Tensor& result : results) {
    const std::vector<float> elements = cast(result, DType::f32).to_vector();
    numbers.emplace_back(elements.begin(), elements.end());
  }
  return numbers;
}

void expect_rows(const Numbers& actual, const Numbers& expected, std::int64_t row, DType dtype) {
  const double tolerance = is_half(dtype) ? 3e-2 : 2e-5;
  const auto first = static_cast<std::size_t>(row * kSize);
  for (std::size_t i = first; i < first + kSize; ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "row " << row;
  }
}

template <typename AnyRuntime>
void expect_unseen(const Case& test) {
  const std::vector<Numbers> plain = run<AnyRuntime>(test, kPlain);
  const std::vector<Numbers> odd = run<AnyRuntime>(test, kStrange);
  for (std::int64_t row = 0; row < kLength; ++row) {
    const bool is_seen = sees_an_odd_one(test.way, kOdd, row);
    if (is_seen) {
      const auto first = odd[0].begin() + row * kSize;
      EXPECT_TRUE(std::any_of(first, first + kSize, [](double y) { return !std::isfinite(y); }))
          << "row " << row << " sees a NaN";
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[0], plain[0], row, test.dtype)) << "result";
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[1], plain[1], row, test.dtype)) << "q";
  }
  // Cotangents of keys are compared only if the odd keys are hidden from all queries.
  if (test.way != Hiding::row_mask && test.way != Hiding::row_added) return;
  for (std::int64_t key = 0; key < kLength; ++key) {
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[2], plain[2], key, test.dtype)) << "k";
    ASSERT_NO_FATAL_FAILURE(expect_rows(odd[3], plain[3], key, test.dtype)) << "v";
  }
}

TEST(UnseenKeys, ReachNoResultAndNoCotangentWithoutTheKernel) {
  for (const Form form : kAllForms) {
    for (const Hiding way : kAllHidings) {
      if (form == Form::ring && way != Hiding::causal) continue;  // a ring can only be causal
      for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
        SCOPED_TRACE(fmt::format("form {}, way {}, {}", static_cast<int>(form),
                                 static_cast<int>(way), to_string(dtype)));
        const Case test{form, way, dtype};
        ASSERT_NO_FATAL_FAILURE(expect_unseen<EngineRuntime>(test)) << "engine";
        ASSERT_NO_FATAL_FAILURE(expect_unseen<SimulateRuntime>(test)) << "simulator";
      }
    }
  }
}

}  // namespace
}  // namespace weft::unseen_composed_test
