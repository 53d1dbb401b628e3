#pragma once
/// Scalar arithmetic of the ops, with StableHLO's rules where C++ leaves a case undefined.

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

namespace weft::kernels {

/// Integers wrap around: they are computed as unsigned ones, for which C++ defines overflow.
template <typename C, typename F>
C wrapping(C a, C b, F f) {
  if constexpr (std::integral<C>) {
    using U = std::make_unsigned_t<C>;
    return static_cast<C>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
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

/// Integers truncate; x / 0 is -1 (all bits set) and the one quotient that overflows wraps, as XLA
/// has it, instead of trapping.
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

/// A NaN on either side gives NaN. Vectors are compared element by element (hence no `||`).
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

/// Integers: a negative exponent gives the truncated quotient 1 / a^-b.
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

/// The sign of a zero or a NaN is the operand itself.
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

/// To an integer: truncates and saturates, NaN gives 0. To bool: x != 0.
template <typename To, typename From>
To converted(From x) {
  if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (std::same_as<From, bool>) {
    return x ? To{1} : To{0};  // unlike a cast, this is vectorized
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    using Limits = std::numeric_limits<To>;
    // The largest integer + 1 is a power of two, so exact; the largest integer itself may not be.
    const From end = static_cast<From>(Limits::max() / 2 + 1) * 2;
    if (x != x) return 0;
    if (x < static_cast<From>(Limits::min())) return Limits::min();
    return x < end ? static_cast<To>(x) : Limits::max();
  } else if constexpr (std::integral<To> && std::integral<From>) {
    using Limits = std::numeric_limits<To>;
    if (std::cmp_less(x, Limits::min())) return Limits::min();
    return std::cmp_greater(x, Limits::max()) ? Limits::max() : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace weft::kernels
