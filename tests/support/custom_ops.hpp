#pragma once
/// Custom ops for tests. On small integers they are exact in every dtype that they support.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "spmd/program/custom_function.hpp"
#include "spmd/rules/custom_rule.hpp"

namespace weft::testing {

/// Calls `body` with a zero of the operand's type, which is f32, f64 or i64.
template <typename Body>
void with_element(const CustomCall& call, Body body) {
  switch (call.operand_type(0).dtype) {
    case DType::f64: return body(double{});
    case DType::i64: return body(std::int64_t{});
    default: return body(float{});
  }
}

/// Computes 2 x + w + 1 for rows x and one row w.
inline void affine_kernel(const CustomCall& call) {
  with_element(call, [&]<typename T>(T) {
    const auto x = call.operand<T>(0);
    const auto w = call.operand<T>(1);
    const auto y = call.result<T>();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i] + w[i % w.size()] + 1;
  });
}

/// Computes the prefix sums of each row.
inline void prefix_sum_kernel(const CustomCall& call) {
  with_element(call, [&]<typename T>(T) {
    const auto x = call.operand<T>(0);
    const auto y = call.result<T>();
    const Shape& shape = call.operand_type(0).shape;
    const auto size = static_cast<std::size_t>(shape[shape.size() - 1]);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] + (i % size == 0 ? T{0} : y[i - 1]);
  });
}

/// Computes the sum of x^2 + 1 over each row, so that zeros in a padding would change the result.
inline void square_sum_kernel(const CustomCall& call) {
  with_element(call, [&]<typename T>(T) {
    const auto x = call.operand<T>(0);
    const auto y = call.result<T>();
    std::ranges::fill(y, T{0});
    for (std::size_t i = 0; i < x.size(); ++i) y[i / (x.size() / y.size())] += x[i] * x[i] + 1;
  });
}

/// The custom ops that custom_target() registers, for operands of `num_dims` dims, 1 to 6. With 3
/// dims the rule of affine is "a b s, s -> a b s".
enum class CustomKind : std::uint8_t { affine, prefix_sum, square_sum };
inline CustomTarget custom_target(CustomKind kind, int num_dims) {
  constexpr std::string_view kRows[] = {"", "a ", "a b ", "a b c ", "a b c d ", "a b c d e "};
  const std::string row(kRows[num_dims - 1]);
  CustomFunction function;
  switch (kind) {
    case CustomKind::affine:
      function.target = {"affine", row + "s, s -> " + row + "s"};
      function.kernel = affine_kernel;
      break;
    case CustomKind::prefix_sum:
      function.target = {"prefix_sum", row + "s -> " + row + "s need_replication={s}"};
      function.kernel = prefix_sum_kernel;
      break;
    case CustomKind::square_sum:
      function.target = {"square_sum", row + "s -> " + row + " reduction={s}"};
      function.kernel = square_sum_kernel;
      break;
  }
  function.target.name += std::to_string(num_dims);
  function.target.rule = to_text(parse_custom_rule(function.target.rule));
  return register_custom_function(function).target;
}

}  // namespace weft::testing
