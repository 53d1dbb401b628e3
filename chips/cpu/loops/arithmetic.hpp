#pragma once
/// The arithmetic of the ops, on scalars. Where C++ leaves a case undefined, StableHLO's rules
/// apply.

#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

namespace weft::kernels {

/// Returns f(a, b). Integers wrap around: they are computed as unsigned integers, for which C++
/// defines overflow.
template <typename C, typename F>
C wrapping(C a, C b, F f) {
  if constexpr (std::integral<C>) {
    using U = std::make_unsigned_t<C>;
    return static_cast<C>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

/// Returns whether x is NaN, without a branch, so that loops that use it are vectorized.
template <typename C>
constexpr bool is_nan(C x) {
  if constexpr (std::floating_point<C>) return x != x;
  return false;
}

struct Add {
  template <typename C>
  C operator()(C a, C b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Subtract {
  template <typename C>
  C operator()(C a, C b) const {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};

struct Multiply {
  template <typename C>
  C operator()(C a, C b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

/// Quotients of integers are truncated. As in XLA, x / 0 is -1 (all bits set), and INT_MIN / -1
/// wraps around instead of trapping.
struct Divide {
  template <typename C>
  C operator()(C a, C b) const {
    if constexpr (std::integral<C>) {
      if (b == 0) return static_cast<C>(-1);
      if constexpr (std::signed_integral<C>) {
        if (b == -1) return Subtract{}(C{0}, a);
      }
    }
    return a / b;
  }
};

/// The remainder as in C, with the dividend's sign. For integers, x % 0 is x.
struct Remainder {
  template <typename C>
  C operator()(C a, C b) const {
    if constexpr (std::integral<C>) {
      if (b == 0) return a;
      if (std::cmp_equal(b, -1)) return 0;  // INT_MIN / -1 overflows and traps
      return static_cast<C>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};

/// Returns the maximum, or NaN if an operand is NaN. Uses `|`, because C may be a vector, for which
/// `||` doesn't work element by element.
struct Maximum {
  template <typename C>
  C operator()(C a, C b) const {
    return ((a >= b) | (a != a)) ? a : b;
  }
};

struct Minimum {
  template <typename C>
  C operator()(C a, C b) const {
    return ((a <= b) | (a != a)) ? a : b;
  }
};

/// For integers and a negative exponent, the result is 1 / (the positive power), truncated.
struct Power {
  template <typename C>
  C operator()(C a, C b) const {
    if constexpr (std::integral<C>) {
      if (b < 0) return a == 1 ? C{1} : a == static_cast<C>(-1) ? (b % 2 != 0 ? a : C{1}) : C{0};
      C power = 1;
      for (; b != 0; b = static_cast<C>(b / 2)) {
        if (b % 2 != 0) power = Multiply{}(power, a);
        a = Multiply{}(a, a);
      }
      return power;
    } else {
      return std::pow(a, b);
    }
  }
};

struct Negate {
  template <typename C>
  C operator()(C x) const {
    if constexpr (std::integral<C>) {
      return Subtract{}(C{0}, x);
    } else {
      return -x;
    }
  }
};

/// Returns -1 or 1, but returns zeros and NaNs unchanged.
struct Sign {
  template <typename C>
  C operator()(C x) const {
    if constexpr (std::integral<C>) {
      return static_cast<C>(static_cast<C>(x > 0) - static_cast<C>(x < 0));
    } else {
      return x == 0 || x != x ? x : std::copysign(C{1}, x);
    }
  }
};

struct Abs {
  template <typename C>
  C operator()(C x) const {
    if constexpr (std::integral<C>) {
      return x < 0 ? Negate{}(x) : x;
    } else {
      return std::fabs(x);
    }
  }
};

}  // namespace weft::kernels
