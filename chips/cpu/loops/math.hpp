#pragma once
/// Mathematical functions in f32. Each is a fixed sequence of steps on a type V: float
/// (float_steps.hpp), or the vectors of a compiled chain. The result for an element is therefore
/// the same on every processor, in every kernel and at every index. The errors are within 1.5 ulp
/// (exponential, log, tanh), 2 ulp (erf, exponential_minus_one) and 2.4 ulp (log_plus_one). The
/// polynomials were fitted by Remez' method on the given ranges, but for erf by Lawson's method.

#include <cmath>
#include <limits>

#include "chips/cpu/loops/float_steps.hpp"

namespace weft::kernels {

/// Returns constant + x * (next + x * (...)).
template <typename V, typename... Rest>
V polynomial(V x, float constant, float next, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return fused(x, V(next), V(constant));
  } else {
    return fused(x, polynomial(x, next, rest...), V(constant));
  }
}

// ln 2, as the sum of two parts. Products of the first part and integers up to 2^8 are exact.
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440e-4F;

/// Splits x into n ln(2) + r, with an integer n and |r| <= ln(2) / 2.
template <typename V>
struct Powers {
  explicit Powers(V x) : n(fused(x, V(1.44269504F), V(kRound)) - V(kRound)) {
    const V r = fused(n, V(-kLn2Low), fused(n, V(-kLn2High), x));
    const V tail = polynomial(r, 4.999999404e-1F, 1.666651964e-1F, 4.166839272e-2F, 8.368779905e-3F,
                              1.381449634e-3F);
    power_minus_one = fused(r * r, tail, r);
  }
  V n;
  V power_minus_one{};  ///< e^r - 1
};

/// Returns e^x = 2^n e^r, for -104 <= x <= 89 and NaN.
template <typename V>
V bounded_exponential(V x) {
  const Powers<V> powers(x);
  return times_power_of_two(V(1.0F) + powers.power_minus_one, powers.n);
}

/// Returns e^x. Beyond the range of bounded_exponential(), the result is 0 or infinity.
template <typename V>
V exponential(V x) {
  return bounded_exponential(at_most(V(89.0F), at_least(V(-104.0F), x)));
}

/// Returns e^x - 1 = 2^n (e^r - 1) + (2^n - 1). Below -20 this is -1, and above 20 it is e^x.
template <typename V>
V exponential_minus_one(V x) {
  const Powers<V> powers(at_most(V(20.0F), at_least(V(-20.0F), x)));
  const V scale = times_power_of_two(V(1.0F), powers.n);
  const V near = fused(scale, powers.power_minus_one, scale - V(1.0F));
  return where_less(V(20.0F), x, exponential(x), where_equal(x, V(0.0F), x, near));
}

/// Returns ln(x) as e ln(2) + ln(1 + f), where x = 2^e (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2).
template <typename V>
V log(V x) {
  using Limits = std::numeric_limits<float>;
  constexpr float kSqrt2 = 1.41421354F;
  const V m = significand(x);
  const V whole = exponent(x);
  const V e = where_less(m, V(kSqrt2), whole, whole + V(1.0F));
  const V f = where_less(m, V(kSqrt2), m, m * V(0.5F)) - V(1.0F);
  const V square = f * f;
  const V tail = polynomial(f, 3.333331347e-1F, -2.500000894e-1F, 2.000211775e-1F, -1.666799933e-1F,
                            1.421956122e-1F, -1.240553856e-1F, 1.188803986e-1F, -1.167591289e-1F,
                            6.747242063e-2F);
  const V small = fused(square, V(-0.5F), fused(f * square, tail, e * V(kLn2Low)));
  const V finite = fused(e, V(kLn2High), f + small);
  // Infinity and NaN are their own logarithms.
  const V positive = where_less(x, V(Limits::infinity()), finite, x);
  const V not_zero = where_less(x, V(0.0F), V(Limits::quiet_NaN()), positive);
  return where_equal(x, V(0.0F), V(-Limits::infinity()), not_zero);
}

/// Returns ln(1 + x) for |x| < 1. The factor x / ((1 + x) - 1) corrects the rounding of 1 + x (W.
/// Kahan's log1p).
template <typename V>
V log_near_one(V x, V sum) {
  return where_equal(sum, V(1.0F), x, log(sum) * (x / (sum - V(1.0F))));
}

template <typename V>
V log_plus_one(V x) {
  const V sum = V(1.0F) + x;
  return where_less(x, V(1.0F), log_near_one(x, sum), log(sum));
}

/// Returns ln(1 + e^x) as max(x, 0) + ln(1 + e^-|x|), in which no exponential overflows.
template <typename V>
V softplus(V x) {
  const V power = bounded_exponential(at_least(V(-104.0F), -magnitude(x)));
  return where_less(V(0.0F), x, x, V(0.0F)) + log_near_one(power, V(1.0F) + power);
}

/// Computes a polynomial if |x| < 0.625; otherwise 1 - 2 / (e^2|x| + 1), which is 1 from 10 on.
template <typename V>
V tanh(V x) {
  const V a = magnitude(x);
  const V square = a * a;
  const V tail = polynomial(square, -3.333327472e-1F, 1.333127469e-1F, -5.372512713e-2F,
                            2.058982663e-2F, -5.648317747e-3F);
  const V near = fused(a * square, tail, a);
  const V far = V(1.0F) - V(2.0F) / (bounded_exponential(at_most(V(20.0F), a + a)) + V(1.0F));
  return with_sign_of(x, where_less(a, V(0.625F), near, far));
}

template <typename V>
V logistic(V x) {
  return V(1.0F) / (V(1.0F) + exponential(-x));
}

/// Computes x + x P(x^2) if |x| < 0.921875; otherwise 1 - e^Q(|x|), where Q approximates
/// ln(erfc(x)) up to 4.
template <typename V>
V erf(V x) {
  const V a = magnitude(x);
  const V p = polynomial(a * a, 1.283791661e-1F, -3.761263490e-1F, 1.128369570e-1F,
                         -2.685939893e-2F, 5.201033317e-3F, -8.142715669e-4F, 8.370142314e-5F);
  const V q = polynomial(at_most(V(4.0F), a), -2.099221165e-4F, -1.127615452F, -6.372858286e-1F,
                         -1.038388461e-1F, 2.218136936e-2F, -3.031593049e-3F, 1.947336859e-4F);
  const V near = fused(a, p, a);
  const V far = where_less(V(4.0F), a, V(1.0F), V(1.0F) - bounded_exponential(q));
  return with_sign_of(x, where_less(a, V(0.921875F), near, far));
}

/// Returns e^x of a float or a double, for kernels outside this file.
struct Exponential {
  double operator()(double x) const { return std::exp(x); }
  float operator()(float x) const { return exponential(x); }
};

}  // namespace weft::kernels
