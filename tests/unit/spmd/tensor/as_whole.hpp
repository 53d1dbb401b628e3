#pragma once
/// Compares programs with shard_map with programs without it.

#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::testing {

using Values = std::vector<float>;
using Results = std::vector<Tensor>;

/// Returns a tensor of 0.1, 0.2, and so on, with both signs.
inline Tensor counted(const Shape& shape, float scale = 0.1F) {
  Values elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = scale * static_cast<float>(i + 1) * (i % 3 == 0 ? -1.0F : 1.0F);
  }
  return f32(elements, shape);
}

inline std::vector<Values> values_of(Runtime& runtime, const std::function<Results()>& program) {
  const RuntimeScope scope(runtime);
  std::vector<Values> values;
  for (const Tensor& tensor : program()) values.push_back(cast(tensor, DType::f32).to_vector());
  return values;
}

inline void expect_equal(const std::vector<Values>& actual, const std::vector<Values>& expected,
                         std::string_view what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size()) << what << ", result " << i;
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      ASSERT_NEAR(actual[i][k], expected[i][k], 1e-5 * (1 + std::abs(expected[i][k])))
          << what << ", result " << i << ", element " << k;
    }
  }
}

/// Runs `program` in the interpreter and on simulated chips. Expects the values of `whole`, the
/// same computation without shard_map, on one chip.
inline void expect_as_whole(const Mesh& mesh, const std::function<Results()>& program,
                            const std::function<Results()>& whole) {
  InterpretRuntime one_chip;
  const std::vector<Values> expected = values_of(one_chip, whole);
  InterpretRuntime interpreted(mesh);
  expect_equal(values_of(interpreted, program), expected, "interpreted");
  SimulateRuntime partitioned(mesh);
  expect_equal(values_of(partitioned, program), expected, "partitioned");
}

}  // namespace weft::testing
