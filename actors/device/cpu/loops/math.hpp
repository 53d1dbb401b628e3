#pragma once
/// Functions in f32. They have no branches, so that loops over them are vectorized. Every lane does
/// the same operations, so that an element's result doesn't depend on its place. Within 2 ulp
/// (log_plus_one: 2.4); polynomials fitted by Remez' method on the ranges given.

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

inline float power_of_two(std::uint32_t exponent) {
  return std::bit_cast<float>((exponent + 127U) << 23);
}

/// x = n ln(2) + r, |r| <= ln(2) / 2; n in two's complement.
struct Powers {
  explicit Powers(float x) {
    // Adding 1.5 * 2^23 rounds to an integer, which then lies in the low bits.
    constexpr float kRound = 12582912.0F;
    const float rounded = x * 1.44269504F + kRound;
    const float whole = rounded - kRound;
    const float r = (x - whole * kLn2High) - whole * kLn2Low;
    const float tail = polynomial(r, 4.999999404e-1F, 1.666651964e-1F, 4.166839272e-2F,
                                  8.368779905e-3F, 1.381449634e-3F);
    n = std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(kRound);
    power_minus_one = r + r * r * tail;
  }
  std::uint32_t n;
  float power_minus_one;  ///< e^r - 1
};

struct Exponential {
  double operator()(double x) const { return std::exp(x); }

  /// e^x = 2^n e^r.
  float operator()(float x) const {
    // Beyond these the result is 0 and infinity; a NaN passes both.
    x = x < -104.0F ? -104.0F : x;
    x = x > 89.0F ? 89.0F : x;
    const Powers powers(x);
    const float power = 1 + powers.power_minus_one;
    // 2^n in two factors: one alone would overflow before the result does, and round twice where
    // the result is subnormal.
    const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(powers.n) >> 1);
    return power * power_of_two(half) * power_of_two(powers.n - half);
  }
};

struct ExponentialMinusOne {
  double operator()(double x) const { return std::expm1(x); }

  /// 2^n (e^r - 1) + (2^n - 1). Below -20 the result is -1; above 20, 1 doesn't count.
  float operator()(float x) const {
    const float below = x > 20.0F ? 20.0F : x;
    const Powers powers(below < -20.0F ? -20.0F : below);
    const float scale = power_of_two(powers.n);
    const float near = scale * powers.power_minus_one + (scale - 1);
    return x > 20.0F ? Exponential{}(x) : x == 0 ? x : near;
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

struct LogPlusOne {
  double operator()(double x) const { return std::log1p(x); }

  /// Below 1, the factor x / ((1 + x) - 1) corrects the rounding of 1 + x (W. Kahan's log1p).
  float operator()(float x) const {
    const float sum = 1 + x;
    const float log = Log{}(sum);
    const float corrected = sum == 1 ? x : log * (x / (sum - 1));
    return x < 1 ? corrected : log;
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
