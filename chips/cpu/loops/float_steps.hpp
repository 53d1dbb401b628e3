#pragma once
/// The basic steps of the functions of math.hpp, on one float. No step has a branch, so loops over
/// them are vectorized. The compiler of chains has the same steps for vectors (jit/lane.hpp), which
/// give the same results except for the bits of a NaN.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::kernels {

/// Returns a * b + c, rounded once on every processor.
inline float fused(float a, float b, float c) { return std::fma(a, b, c); }

/// Returns the smaller of x and `top`, or NaN if x is NaN.
inline float at_most(float top, float x) { return top < x ? top : x; }
inline float at_least(float bottom, float x) { return bottom > x ? bottom : x; }

inline float where_less(float a, float b, float then, float otherwise) {
  return a < b ? then : otherwise;
}
inline float where_equal(float a, float b, float then, float otherwise) {
  return a == b ? then : otherwise;
}

inline float magnitude(float x) { return std::fabs(x); }
/// Returns the number with the magnitude of `x` and the sign of `sign`.
inline float with_sign_of(float sign, float x) { return std::copysign(x, sign); }

/// Adding this to x with |x| < 2^22 rounds x to an integer, which is then in the low bits of the
/// sum.
inline constexpr float kRound = 12582912.0F;

/// Returns x 2^n, rounded once, for 0.5 < x < 2 and an integer n in -151..129.
inline float times_power_of_two(float x, float n) {
  const auto power = [](std::uint32_t exponent) {
    return std::bit_cast<float>((exponent + 127U) << 23);
  };
  // Multiplies by two powers one after the other, because 2^n may overflow even if the result
  // doesn't. The first product is exact.
  const std::uint32_t all =
      std::bit_cast<std::uint32_t>(n + kRound) - std::bit_cast<std::uint32_t>(kRound);
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(all) >> 1);
  return x * power(half) * power(all - half);
}

/// Split x: for finite x > 0, x = significand(x) 2^exponent(x) with 1 <= significand(x) < 2. For
/// other x, the results are unspecified.
inline float exponent(float x) {
  const bool subnormal = x < std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<std::uint32_t>(subnormal ? x * 8388608.0F : x);
  return static_cast<float>(static_cast<std::int32_t>(bits >> 23) - (subnormal ? 127 + 23 : 127));
}
inline float significand(float x) {
  const bool subnormal = x < std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<std::uint32_t>(subnormal ? x * 8388608.0F : x);
  return std::bit_cast<float>((bits & 0x7fffffU) | 0x3f800000U);
}

}  // namespace weft::kernels
