#pragma once
/// The error function in f32, as the functions of math.hpp. Within 1.3 ulp; both polynomials were
/// fitted by Lawson's method.

#include <cmath>

#include "actors/device/cpu/loops/math.hpp"

namespace weft::kernels {

struct Erf {
  double operator()(double x) const { return std::erf(x); }

  /// x + x P(x^2) below 0.921875; 1 - e^Q(x) above, where Q approximates ln(erfc(x)) up to 4.
  float operator()(float x) const {
    const float a = std::fabs(x);
    const float near =
        a + a * polynomial(a * a, 1.283791661e-1F, -3.761263490e-1F, 1.128369570e-1F,
                           -2.685939893e-2F, 5.201033317e-3F, -8.142715669e-4F, 8.370142314e-5F);
    const float far =
        1 - Exponential{}(polynomial(a < 4.0F ? a : 4.0F, -2.099221165e-4F, -1.127615452F,
                                     -6.372858286e-1F, -1.038388461e-1F, 2.218136936e-2F,
                                     -3.031593049e-3F, 1.947336859e-4F));
    return std::copysign(a < 0.921875F ? near : a < 4.0F ? far : a != a ? a : 1.0F, x);
  }
};

}  // namespace weft::kernels
