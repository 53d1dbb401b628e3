#pragma once
/// What the tests of the tensor API share.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/spmd/tensor/functional.hpp>
#include <weft/tests/support/expect_error.hpp>
#include <weft/tests/support/interpret_runtime.hpp>

namespace weft::testing {

/// Runs in the interpreter, without a mesh.
class TensorTest : public ::testing::Test {
 protected:
  InterpretRuntime runtime_;
  RuntimeScope scope_{runtime_};
};

inline Tensor f32(const std::vector<float>& elements, const Shape& shape) {
  return to_device(elements, shape);
}

inline Tensor i32(const std::vector<std::int32_t>& elements, const Shape& shape) {
  return to_device(elements, shape);
}

inline void expect_near(const Tensor& tensor, const std::vector<double>& expected) {
  const std::vector<float> elements = tensor.to_vector();
  ASSERT_EQ(elements.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(elements[i], expected[i], 1e-6) << "element " << i;
  }
}

}  // namespace weft::testing
