#include "spmd/program/element.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <weft/tensor/element.hpp>

namespace weft {
namespace {

template <typename T>
void store(T value, std::byte* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename Int>
Int saturate(double value) {
  // A double can't represent the largest i64, so `value` is compared with 2^63, which it can
  // represent.
  constexpr double kAboveMax = 2.0 * static_cast<double>(std::numeric_limits<Int>::max() / 2 + 1);
  if (std::isnan(value)) return 0;
  if (value >= kAboveMax) return std::numeric_limits<Int>::max();
  if (value <= static_cast<double>(std::numeric_limits<Int>::min())) {
    return std::numeric_limits<Int>::min();
  }
  return static_cast<Int>(value);
}

/// Returns a float that rounds to narrower dtypes as the double does. Rounding to the nearest float
/// first would round twice.
float to_odd(double value) {
  // If the float isn't exact, sets its last bit (round to odd). The second rounding then depends on
  // which side of a tie the double was.
  float narrowed = static_cast<float>(value);
  if (std::isnan(value)) return std::numeric_limits<float>::quiet_NaN();
  if (static_cast<double>(narrowed) == value || std::isinf(narrowed)) return narrowed;
  auto bits = std::bit_cast<std::uint32_t>(narrowed);
  if (std::abs(static_cast<double>(narrowed)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

}  // namespace

void store_element(DType dtype, double value, std::byte* bytes) noexcept {
  switch (dtype) {
    case DType::pred: return store(static_cast<std::uint8_t>(value != 0), bytes);
    case DType::i32: return store(saturate<std::int32_t>(value), bytes);
    case DType::u32: return store(saturate<std::uint32_t>(value), bytes);
    case DType::i64: return store(saturate<std::int64_t>(value), bytes);
    case DType::bf16: return store(Bf16(to_odd(value)), bytes);
    case DType::f16: return store(F16(to_odd(value)), bytes);
    case DType::i8: return store(saturate<std::int8_t>(value), bytes);
    case DType::u8: return store(saturate<std::uint8_t>(value), bytes);
    case DType::f32: return store(static_cast<float>(value), bytes);
    case DType::f64: return store(value, bytes);
  }
}

double load_element(DType dtype, const std::byte* bytes) noexcept {
  switch (dtype) {
    case DType::pred: return load<std::uint8_t>(bytes) != 0 ? 1 : 0;
    case DType::i32: return load<std::int32_t>(bytes);
    case DType::u32: return load<std::uint32_t>(bytes);
    case DType::i64: return static_cast<double>(load<std::int64_t>(bytes));
    case DType::bf16: return static_cast<float>(load<Bf16>(bytes));
    case DType::f16: return static_cast<float>(load<F16>(bytes));
    case DType::i8: return load<std::int8_t>(bytes);
    case DType::u8: return load<std::uint8_t>(bytes);
    case DType::f32: return load<float>(bytes);
    case DType::f64: return load<double>(bytes);
  }
  return 0;
}

bool is_representable(DType dtype, double value) noexcept {
  std::array<std::byte, 8> bytes{};
  store_element(dtype, value, bytes.data());
  const double stored = load_element(dtype, bytes.data());
  if (is_floating(dtype)) return std::isfinite(value) == std::isfinite(stored);
  // 2^63 is stored as the largest i64, which as a double is 2^63 again, but 2^63 isn't an i64.
  constexpr double kAboveI64 = 0x1p63;
  return stored == value && value < kAboveI64;
}

}  // namespace weft
