#pragma once
/// A fixture and helpers for tests of the tensor API.

#include <gtest/gtest.h>

#include <functional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <weft/nn/functional.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/interpret_runtime.hpp"

namespace weft::testing {

/// Runs programs in the interpreter, without a mesh.
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

/// Expects that a call in `body` is refused with these words and with its line, which `body` stores
/// in `line`.
inline void expect_refusal(std::initializer_list<std::string_view> words,
                           const std::function<void(int& line)>& body,
                           const std::source_location& here = std::source_location::current()) {
  int line = 0;
  const std::string message = expect_error(Errc::invalid_argument, words, [&] { body(line); });
  std::string_view file = here.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  EXPECT_TRUE(message.ends_with(fmt::format("(at {}:{})", file, line))) << message;
}

}  // namespace weft::testing
