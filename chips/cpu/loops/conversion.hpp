#pragma once
/// converted(): converts an element. Where C++ leaves a case undefined, StableHLO's rules apply.

#include <concepts>
#include <limits>
#include <utility>

namespace weft::kernels {

/// Converts x to To. A conversion to an integer truncates and saturates, and NaN gives 0. A
/// conversion to bool gives x != 0.
template <typename To, typename From>
To converted(From x) {
  if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (std::same_as<From, bool>) {
    return x ? To{1} : To{0};  // unlike a cast, this is vectorized
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    using Limits = std::numeric_limits<To>;
    // The bound is the largest integer + 1. As a power of two it is exact in From, while the
    // largest integer may not be exact.
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
