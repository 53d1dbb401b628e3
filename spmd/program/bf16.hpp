#pragma once
/// bfloat16, for which C++20 has no type, and the dtypes of C++ types.

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>

#include <weft/spmd/program/type.hpp>

namespace weft {

/// The upper half of a float; computed with as float, rounded to nearest even when stored.
struct Bf16 {
  std::uint16_t bits;

  Bf16() = default;
  explicit Bf16(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    // Adding to a NaN could carry into the sign: keep its upper half, made quiet.
    const std::uint32_t nan = (word >> 16) | 0x40U;
    const std::uint32_t rounded = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
    bits = static_cast<std::uint16_t>(value != value ? nan : rounded);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// The DType of a C++ type, if there is one.
template <typename T>
constexpr std::optional<DType> dtype_of() {
  if constexpr (std::same_as<T, bool>) return DType::pred;
  if constexpr (std::same_as<T, std::int32_t>) return DType::i32;
  if constexpr (std::same_as<T, std::uint32_t>) return DType::u32;
  if constexpr (std::same_as<T, std::int64_t>) return DType::i64;
  if constexpr (std::same_as<T, Bf16>) return DType::bf16;
  if constexpr (std::same_as<T, float>) return DType::f32;
  if constexpr (std::same_as<T, double>) return DType::f64;
  return {};
}

}  // namespace weft
