#pragma once
/// exponential, log, tanh and logistic in f32. They have no branches, so that loops over them are
/// vectorized. Every lane does the same operations, so that an element's result doesn't depend on
/// its place. Within 2 ulp; polynomials fitted by Remez' method on the ranges given.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::kernels {

/// a + x * (b + x * (c + ...)).
template <typename... Rest>
float polynomial(float x, float constant, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return constant;
  } else {
    return constant + x * polynomial(x, rest...);
  }
}

// ln 2 in two parts: multiples of the first up to 2^8 are exact.
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440e-4F;

struct Exponential {
  double operator()(double x) const { return std::exp(x); }

  /// e^x = 2^n e^r with |r| <= ln(2) / 2.
  float operator()(float x) const {
    // Beyond these the result is 0 and infinity; a NaN passes both.
    x = x < -104.0F ? -104.0F : x;
    x = x > 89.0F ? 89.0F : x;
    // Adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
    constexpr float kRound = 12582912.0F;
    const float rounded = x * 1.44269504F + kRound;
    const float n = rounded - kRound;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    const float tail = polynomial(r, 4.999999404e-1F, 1.666651964e-1F, 4.166839272e-2F,
                                  8.368779905e-3F, 1.381449634e-3F);
    const float power = 1 + (r + r * r * tail);
    // 2^n in two factors: one alone would overflow before the result does, and round twice where
    // the result is subnormal.
    const std::uint32_t bits =
        std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(kRound);
    const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 1);
    return power * power_of_two(half) * power_of_two(bits - half);
  }

 private:
  static float power_of_two(std::uint32_t exponent) {
    return std::bit_cast<float>((exponent + 127U) << 23);
  }
};

struct Log {
  double operator()(double x) const { return std::log(x); }

  /// log(x) = e ln(2) + log(1 + f) with sqrt(1/2) <= 1 + f < sqrt(2).
  float operator()(float x) const {
    const bool subnormal = x < std::numeric_limits<float>::min();
    const float scaled = subnormal ? x * 8388608.0F : x;
    constexpr std::uint32_t kSqrtHalf = 0x3f3504f3U;
    const auto bits = std::bit_cast<std::uint32_t>(scaled);
    const std::int32_t exponent = static_cast<std::int32_t>(bits - kSqrtHalf) >> 23;
    const float f = std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)) - 1;
    const auto e = static_cast<float>(subnormal ? exponent - 23 : exponent);
    const float tail = polynomial(f, 3.333331347e-1F, -2.500000894e-1F, 2.000211775e-1F,
                                  -1.666799933e-1F, 1.421956122e-1F, -1.240553856e-1F,
                                  1.188803986e-1F, -1.167591289e-1F, 6.747242063e-2F);
    const float square = f * f;
    const float small = (f * square * tail + e * kLn2Low) - 0.5F * square;
    const float finite = (f + small) + e * kLn2High;
    using Limits = std::numeric_limits<float>;
    const float positive = x <= Limits::max() ? finite : x;  // infinity and NaN are themselves
    return x == 0 ? -Limits::infinity() : x < 0 ? Limits::quiet_NaN() : positive;
  }
};

struct Tanh {
  double operator()(double x) const { return std::tanh(x); }

  /// A polynomial below 0.625, 1 - 2 / (e^2x + 1) above.
  float operator()(float x) const {
    const float a = std::fabs(x);
    const float square = a * a;
    const float tail = polynomial(square, -3.333327472e-1F, 1.333127469e-1F, -5.372512713e-2F,
                                  2.058982663e-2F, -5.648317747e-3F);
    const float near = a + a * square * tail;
    const float far = 1 - 2 / (Exponential{}(a + a) + 1);
    return std::copysign(a < 0.625F ? near : far, x);
  }
};

struct Logistic {
  template <typename C>
  C operator()(C x) const {
    return 1 / (1 + Exponential{}(-x));
  }
};

}  // namespace weft::kernels
